"""A linear layer with its bias and activation in the product's epilogue, forward and backward, by wsgemm.torch.linear.

Compares numbers and gradients with torch's, and prints the gain: on the GPU if there is one.
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


def main():
    torch.manual_seed(5)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows, width = (8192, 4096) if device == "cuda" else (256, 128)
    x = torch.randn(rows, width, device=device)
    layer = torch.nn.Linear(width, width, device=device)
    theirs = lambda: torch.relu(layer(x))  # noqa: E731
    ours = lambda: wsgemm.torch.linear(x, layer.weight, layer.bias, "relu")  # noqa: E731
    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-4)
    gradients = [torch.autograd.grad(f().square().mean(), layer.parameters()) for f in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-5)
    with torch.no_grad():
        before, after = best_ms(theirs, device), best_ms(ours, device)
    print(f"forward: {before:.3f} ms by torch, {after:.3f} ms: {before / after:.2f} times as fast")
    step = lambda f: torch.autograd.grad(f().sum(), layer.parameters())  # noqa: E731
    before, after = best_ms(lambda: step(theirs), device), best_ms(lambda: step(ours), device)
    print(f"forward and backward: {before:.3f} ms by torch, {after:.3f} ms: {before / after:.2f} times as fast")


if __name__ == "__main__":
    main()
