"""What the operators do to tensors that torch has unwrapped: no gradients, no transforms, real memory.

The short way of _plans.py, else the long one: of _device_product.py on GPUs, through NumPy views in host memory.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from .. import _device_product
from .._arrays import bfloat16
from .._epilogue import Epilogue
from .._grouped import describe_groups, grouped_matmul
from .._matmul import matmul as matmul_of_arrays
from .._plans import way_of
from .._product import product_shapes


def product(
    a: Tensor,
    b: Tensor,
    out: Tensor | None = None,
    alpha: complex = 1,
    beta: complex = 0,
    bias: Tensor | None = None,
    activation: str | None = None,
) -> Tensor:
    """As wsgemm.matmul."""
    way = way_of(a)
    if way is not None:
        done: Tensor | None = way.matmul(a, b, out, alpha, beta, None, bias, activation, False)
        if done is not None:
            return done
    epilogue = None if bias is None and activation is None else Epilogue(activation, bias, None, 1, None)
    if a.device.type == "cpu":
        return _on_host(a, b, out, alpha, beta, epilogue)
    with ExitStack() as closing, torch.no_grad():
        operands = _device_product.operands(closing, a, b, out, epilogue=epilogue)
        if operands is None:
            raise TypeError(f"a lies on {a.device}, but wsgemm multiplies in host memory and on NVIDIA GPUs")
        result: Tensor = _device_product.matmul(operands, None, alpha, beta, epilogue, None)
    return result


def grouped(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """As wsgemm.grouped_matmul."""
    if a.device.type == "cpu":
        result = torch.empty(grouped_shape(a, b, offs), dtype=a.dtype)
        grouped_matmul(host_view(a), host_view(b), offs.numpy(), host_view(result))
        if b.dim() == 3:
            result[int(offs[-1]) if len(offs) else 0 :] = 0
        return result
    way = way_of(a)
    done: Tensor | None = None if way is None else way.grouped(a, b, offs, None, 1, 0, None, describe_groups)
    if done is not None:
        return done
    with torch.no_grad():
        of_numbers: Tensor = grouped_matmul(a.resolve_conj(), b.resolve_conj(), offs)
    return of_numbers


def grouped_shape(a: Tensor, b: Tensor, offs: Tensor) -> tuple[int, ...]:
    return (a.shape[0], b.shape[2]) if b.dim() == 3 else (offs.shape[0], a.shape[0], b.shape[1])


def _on_host(a: Tensor, b: Tensor, out: Tensor | None, alpha: complex, beta: complex, epilogue: Epilogue | None) -> Tensor:
    given = {"a": a, "b": b, "out": out, "bias": epilogue and epilogue.bias}
    for name, x in given.items():
        if x is not None and x.device.type != "cpu":
            raise TypeError(f"a lies in host memory, but {name} on {x.device}; all must lie together")
    if out is None:
        out = torch.empty(product_shapes(tuple(a.shape), tuple(b.shape)).out, dtype=a.dtype)
    matmul_of_arrays(
        host_view(a), host_view(b), host_view(out), alpha, beta,
        activation=epilogue and epilogue.activation,
        bias=None if epilogue is None or epilogue.bias is None else host_view(epilogue.bias),
    )  # fmt: skip
    return out


def host_view(x: Tensor) -> Any:
    """A NumPy array of the tensor's memory, or of a copy if that stands for other numbers."""
    x = x.detach().resolve_conj().resolve_neg()
    return x.view(torch.int16).numpy().view(bfloat16()) if x.dtype == torch.bfloat16 else x.numpy()
