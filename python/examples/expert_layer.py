"""A mixture-of-experts layer, forward and backward, by wsgemm.torch.grouped_mm: tokens sorted by expert, sizes left on the GPU.

Each token goes to two of the experts. Numbers and gradients are compared with a loop over the experts, and the time with that
loop and, where torch has it, with torch._grouped_mm.
"""

import time

import torch
import wsgemm.torch


def best_ms(call, device, n_times=7):
    times = []
    for _ in range(n_times):
        begin = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def grouped_by_loop(a, b, offs):
    ends = offs.tolist()  # the host waits for the GPU here
    return torch.cat([a[begin:end] @ b[i] for i, (begin, end) in enumerate(zip([0, *ends], ends))])


class ExpertLayer(torch.nn.Module):
    def __init__(self, n_experts, width, inner, dtype, device):
        super().__init__()
        make = lambda *shape: torch.nn.Parameter(torch.randn(shape, device=device, dtype=dtype) * shape[1] ** -0.5)  # noqa: E731
        self.router = torch.nn.Linear(width, n_experts, bias=False, device=device, dtype=dtype)
        self.up, self.gate, self.down = make(n_experts, width, inner), make(n_experts, width, inner), make(n_experts, inner, width)

    def forward(self, x, grouped):
        weights, experts = torch.topk(self.router(x).softmax(-1), 2)
        order = experts.flatten().argsort(stable=True)  # pairs of a token and an expert, by expert
        counts = torch.zeros(len(self.up), dtype=torch.int32, device=x.device)
        offs = counts.scatter_add_(0, experts.flatten(), torch.ones_like(order, dtype=torch.int32)).cumsum(0).to(torch.int32)
        tokens = x[order // 2]
        inner = torch.nn.functional.silu(grouped(tokens, self.gate, offs)) * grouped(tokens, self.up, offs)
        outputs = grouped(inner, self.down, offs) * weights.flatten()[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add_(0, order // 2, outputs.to(x.dtype))


def main():
    torch.manual_seed(7)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    on_gpu = device == "cuda"
    n_tokens, n_experts, width, inner = (8192, 64, 2048, 1024) if on_gpu else (96, 6, 32, 48)
    dtype = torch.bfloat16 if on_gpu else torch.float64
    layer = ExpertLayer(n_experts, width, inner, dtype, device)
    x = torch.randn(n_tokens, width, device=device, dtype=dtype)
    ways = {"a loop": grouped_by_loop, "wsgemm": wsgemm.torch.grouped_mm}
    if on_gpu and hasattr(torch, "_grouped_mm"):
        ways["torch._grouped_mm"] = lambda a, b, offs: torch._grouped_mm(a, b, offs=offs)
    parameters = list(layer.parameters())
    step = lambda way: torch.autograd.grad(layer(x, way).float().square().mean(), parameters)  # noqa: E731
    near = {"rtol": 5e-2, "atol": 5e-3} if on_gpu else {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(layer(x, ways["wsgemm"]), layer(x, ways["a loop"]), **near)
    for ours, theirs in zip(step(ways["wsgemm"]), step(ways["a loop"])):
        scale = theirs.abs().max()
        torch.testing.assert_close(ours / scale, theirs / scale, **near)
    for what, call in (("forward", lambda way: layer(x, way)), ("forward and backward", step)):
        took = {name: best_ms(lambda way=way: call(way), device) for name, way in ways.items()}
        for name, ms in took.items():
            if name != "wsgemm":
                print(f"{what}: {ms:.3f} ms by {name}, {took['wsgemm']:.3f} ms: {ms / took['wsgemm']:.2f} times as fast")


if __name__ == "__main__":
    main()
