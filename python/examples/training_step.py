"""An FP32 training step of a small transformer, made faster by one line: with wsgemm.torch.patch().

    training_step.py [--width 1024] [--layers 8] [--batch 16] [--length 512] [--steps 5]

Both ways start from the same weights and see the same batches; the losses are compared step by step. Without a GPU a
tiny model shows that nothing changes.
"""

import argparse
import statistics
import time

import torch
import wsgemm.torch


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.merge = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).flatten(-2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))


def model_of(options, device):
    torch.manual_seed(1)
    heads = max(options.width // 64, 1)
    layers = [torch.nn.Embedding(options.words, options.width), *(Block(options.width, heads) for _ in range(options.layers))]
    return torch.nn.Sequential(*layers, torch.nn.LayerNorm(options.width), torch.nn.Linear(options.width, options.words)).to(device)


def train(options, device):
    """(the losses, the median time of a step)"""
    model = model_of(options, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = torch.Generator().manual_seed(2)
    losses, times = [], []
    for _ in range(options.steps + 2):
        words = torch.randint(options.words, (options.batch, options.length + 1), generator=batches).to(device)
        begin = time.perf_counter()
        logits = model(words[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits for the GPU
        times.append(time.perf_counter() - begin)
    return losses, statistics.median(times[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    has_gpu = torch.cuda.is_available()
    for name, value in (("width", 1024), ("layers", 8), ("batch", 16), ("length", 512), ("steps", 5), ("words", 4096)):
        parser.add_argument("--" + name, type=int, default=value if has_gpu or name == "steps" else max(value // 16, 2))
    options, device = parser.parse_args(), "cuda" if has_gpu else "cpu"
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    before, before_s = train(options, device)
    with wsgemm.torch.patch():
        after, after_s = train(options, device)
    worst = max(abs(x - y) / abs(x) for x, y in zip(before, after))
    print(f"losses differ by {worst:.1e} at most in {len(before)} steps: {before[0]:.5f} ... {before[-1]:.5f}, {after[-1]:.5f}")
    print(f"a step takes {before_s * 1e3:.1f} ms, with patch() {after_s * 1e3:.1f} ms: {before_s / after_s:.2f} times as fast")
    if worst > 1e-5:
        raise SystemExit("the losses differ")


if __name__ == "__main__":
    main()
