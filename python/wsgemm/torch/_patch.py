"""patch(): torch's own products by wsgemm, where that is faster.

It takes the place of the kernels of aten's mm, addmm, bmm and baddbmm for GPUs, below autograd, autocast, vmap and all else:
matmul, F.linear, einsum and their gradients come down to these. What is not faster goes on to torch's
kernel, by the variant with out=.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _operators
from ._compute import product

_lock = threading.Lock()
_library: Any = torch.library  # which has no types
_active: dict[str, tuple[int, Any]] = {}  # by dispatch key: how often, and what is registered


class Win(NamedTuple):
    """Products with min(m, n) >= least_mn, k >= least_k and m n k >= least_products, one by one in a
    batch.
    """

    dtype: torch.dtype
    least_mn: int
    least_k: int
    least_products: float


# Rows of src/cublas/wins.def, where their origin stands; python/tests/test_wins.py compares.
WINS = (
    Win(torch.float32, 96, 256, 4.0e8),
    Win(torch.float32, 512, 384, 0),
    Win(torch.float32, 128, 1024, 2.0e8),
    Win(torch.complex64, 192, 256, 2.0e8),
    Win(torch.complex64, 48, 48, 1.5e9),
    Win(torch.complex64, 192, 512, 1.0e8),
)
WINS_OF_EPILOGUES = (Win(torch.float32, 256, 512, 1.5e9),)


def _is_faster(a: Tensor, b: Tensor, wins: tuple[Win, ...]) -> bool:
    if a.dtype != torch.float32 and a.dtype != torch.complex64:
        return False
    m, k = a.shape[-2:]
    n = b.shape[-1]
    n_products = m * n * k
    return not _is_tf32_allowed() and any(
        a.dtype == win.dtype and min(m, n) >= win.least_mn and k >= win.least_k and n_products >= win.least_products
        for win in wins
    )


def _is_tf32_allowed() -> bool:
    return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def _mm(a: Tensor, b: Tensor) -> Tensor:
    if _is_faster(a, b, WINS):
        return product(a, b)
    return torch.mm(a, b, out=a.new_empty((a.shape[0], b.shape[1])))


def _bmm(a: Tensor, b: Tensor) -> Tensor:
    if _is_faster(a, b, WINS):
        return product(a, b)
    return torch.bmm(a, b, out=a.new_empty((*a.shape[:2], b.shape[2])))


def _addmm(input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    if _is_faster(a, b, WINS if input.dim() == 2 else WINS_OF_EPILOGUES):
        return _operators.addmm(input, a, b, beta=beta, alpha=alpha)
    return torch.addmm(input, a, b, beta=beta, alpha=alpha, out=a.new_empty((a.shape[0], b.shape[1])))


def _baddbmm(input: Tensor, a: Tensor, b: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    shape = (*a.shape[:2], b.shape[2])
    if _is_faster(a, b, WINS):
        if beta == 0:
            return product(a, b, alpha=alpha)
        return product(a, b, input.expand(shape).clone(memory_format=torch.contiguous_format), alpha, beta)
    return torch.baddbmm(input, a, b, beta=beta, alpha=alpha, out=a.new_empty(shape))


KERNELS: dict[str, Callable[..., Tensor]] = {"mm": _mm, "bmm": _bmm, "addmm": _addmm, "baddbmm": _baddbmm}


@contextlib.contextmanager
def patch() -> Iterator[None]:
    """Inside the with block, torch's float32 and complex64 products on GPUs are wsgemm's where that
    is known to be faster: matmul, mm, bmm, F.linear, addmm, einsum and all that is made of them, in
    modules and in gradients, for the whole process. All other products, those that may use TF32
    (torch.backends.cuda.matmul), and those inside kernels of torch.compile stay torch's.

        with wsgemm.torch.patch():
            loss = model(batch)
            loss.backward()

    The classes that are faster were measured on an H200. Each product costs some microseconds of
    the host more than before, which matters where a program waits for the host.
    """
    with _patched("CUDA"):
        yield


@contextlib.contextmanager
def _patched(key: str) -> Iterator[None]:
    with _lock:
        n_before, library = _active.get(key, (0, None))
        if library is None:
            library = _library.Library("aten", "IMPL")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a kernel is replaced
                for name, kernel in KERNELS.items():
                    library.impl(name, kernel, key, **_ALLOWED)
        _active[key] = (n_before + 1, library)
    try:
        yield
    finally:
        with _lock:
            n_before, library = _active.pop(key)
            if n_before > 1:
                _active[key] = (n_before - 1, library)
            else:
                library._destroy()


_ALLOWED = {"allow_override": True} if "allow_override" in _library.Library.impl.__code__.co_varnames else {}
