"""wsgemm for torch: products as torch's operators, with gradients, in host memory and on GPUs.

    import wsgemm.torch as wt

    y = wt.linear(x, weight, bias, activation="gelu_tanh")  # the product's own epilogue
    with wt.patch():  # torch's own float32 and complex64 products on GPUs
        loss = model(batch).square().mean()
        loss.backward()

mm, bmm, matmul, addmm, linear and grouped_mm are torch.library's operators (torch.ops.wsgemm):
autograd, also twice, autocast, vmap, torch.compile without graph breaks, CUDA graphs. Types are
those of wsgemm.matmul, never mixed; the results are within the bounds of docs/numerics.md. Products
run on torch's current stream of the operands' device, where their results are allocated, too.
"""

from ._functions import addmm, bmm, grouped_mm, linear, matmul, mm
from ._patch import patch

__all__ = ["addmm", "bmm", "grouped_mm", "linear", "matmul", "mm", "patch"]
