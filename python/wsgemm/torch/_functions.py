"""What users call: a product that torch need not know of goes straight to the library, all others through the operators."""

from __future__ import annotations

import torch
from torch import Tensor

from .._plans import way_of
from ._operators import ACTIVATIONS, call, compute, is_watched, multiply, record

matmul = multiply
_is_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling


def mm(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for two matrices."""
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}, but mm takes matrices")
    return matmul(a, b)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """a[i] @ b[i] for two stacks of as many matrices."""
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0]:
        raise ValueError(f"a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}, but bmm takes two equal stacks")
    return matmul(a, b)


def grouped_mm(a: Tensor, b: Tensor, offs: Tensor | None = None) -> Tensor:
    """Products of groups, whose ends offs holds (int32 or int64, on the device of a and b): each with a
    matrix of its own.

    The shapes are those of torch._grouped_mm: rows of a (m, k) with matrices of b (groups, k, n);
    columns of b (k, n) with matrices of a (groups, m, k); or columns of a (m, k) with rows of b (k, n),
    whose result is (groups, m, n). Two stacks, and no offs: bmm. Groups may end anywhere, and be empty.
    Behind the last end, the result is undefined on a GPU. The sizes stay there: half precision on
    compute capability 9.0, with rows of multiples of 16 bytes; all else raises WsgemmError.

    >>> import torch, wsgemm.torch
    >>> wsgemm.torch.grouped_mm(torch.ones(3, 2), torch.arange(4.0).reshape(2, 2, 1), torch.tensor([1, 3]))
    tensor([[1.],
            [5.],
            [5.]])
    """
    if offs is None:
        return bmm(a, b)
    if a.dim() == 3 and b.dim() == 2:
        return grouped_mm(b.mT, a.mT, offs).mT
    if _is_compiling() or is_watched() or not (way_of(a) and way_of(b) and way_of(offs)):
        return call("grouped_mm", a, b, offs)
    is_recorded = _is_grad_enabled() and (a.requires_grad or b.requires_grad)
    return (record if is_recorded else compute)("grouped_mm", a, b, offs)


def addmm(input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (a @ b) for matrices a and b; input is broadcast.

    >>> import torch, wsgemm.torch
    >>> wsgemm.torch.addmm(torch.tensor([1.0, 2.0]), torch.ones(2, 3), torch.ones(3, 2))
    tensor([[4., 5.],
            [4., 5.]])
    """
    return call("addmm", input, a, b, beta=beta, alpha=alpha)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """activation(input @ weight.T + bias), in one pass over the result.

    activation: "relu", "gelu_tanh", "gelu_erf" or "silu"; None: none. Where a gradient is recorded,
    all but relu are functions of torch's after the product, as their gradients ask for what is
    before them.

    >>> import torch, wsgemm.torch
    >>> x, weight, bias = torch.ones(2, 3), torch.ones(1, 3), torch.tensor([-5.0])
    >>> wsgemm.torch.linear(x, weight, bias), wsgemm.torch.linear(x, weight, bias, "relu")
    (tensor([[-2.],
            [-2.]]), tensor([[0.],
            [0.]]))
    """
    is_recorded = _is_grad_enabled() and (
        input.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    )  # fmt: skip
    after = ACTIVATIONS[activation].function if is_recorded and activation in ACTIVATIONS and activation != "relu" else None
    own = activation if after is None else None
    is_plain = not (_is_compiling() or is_watched()) and weight.dim() == 2
    if not (is_plain and way_of(input) and way_of(weight) and (bias is None or way_of(bias))):  # of no class of others'
        result = call("linear", input, weight, bias, own)
    elif is_recorded:
        result = record("linear", input, weight, bias, own)
    else:
        result = compute("linear", input, weight, bias, own)
    return result if after is None else after(result)
