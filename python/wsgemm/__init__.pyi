"""What a type checker knows of wsgemm: results are of the type of the arrays, without Any.

NumPy arrays keep their element type; arrays on a GPU give arrays of their own library; lists and whatever else
numpy.asarray takes give NumPy arrays of an element type that only the call tells. python/tests/test_stubs.py compares with the
functions themselves.
"""

from contextlib import AbstractContextManager as _Context
from typing import Literal as _Literal
from typing import Protocol as _Protocol
from typing import TypeVar as _TypeVar
from typing import overload as _overload

import numpy as _np
from numpy.typing import ArrayLike as _ArrayLike
from numpy.typing import DTypeLike as _DTypeLike
from numpy.typing import NDArray as _NDArray

from ._autotune import TuningResult as TuningResult
from ._autotune import TuningStep as TuningStep
from ._autotune import autotune as autotune
from ._autotune import clear_tuning as clear_tuning
from ._autotune import import_tuning as import_tuning
from ._autotune import tuning_file as tuning_file
from ._autotune import tuning_lines as tuning_lines
from ._handle import Handle as Handle
from ._info import KernelInfo as KernelInfo
from ._info import config as config
from ._info import kernel_info as kernel_info
from ._info import kernels as kernels
from ._info import machine as machine
from ._lib import Status as Status
from ._lib import WsgemmError as WsgemmError
from ._packed import Packed as Packed

class _OnDevice(_Protocol):
    """Arrays of torch, cupy, jax and others, which tell each other where they lie."""

    def __dlpack__(self) -> object: ...

_S = _TypeVar("_S", bound=_np.generic)
_T_co = _TypeVar("_T_co", bound=_np.generic, covariant=True)
_X = _TypeVar("_X", bound=_OnDevice)
_C = _TypeVar("_C", bound=_OnDevice)
_Array = _NDArray[_np.generic]
_Operand = _ArrayLike | _OnDevice | Packed
_Activation = _Literal["relu", "gelu_tanh", "gelu_erf", "silu"]
_Trans = int | _Literal["N", "T", "C"]
_Side = int | _Literal["left", "right"]

__version__: str
default_handle: Handle

def num_threads(n: int) -> _Context[None]: ...
def set_pinned_limit(n_bytes: int) -> None: ...

@_overload
def matmul(
    a: _Operand, b: _Operand, out: _C, alpha: complex = 1, beta: complex = 0, *, dtype: _DTypeLike | None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _C: ...  # fmt: skip
@_overload
def matmul(
    a: _NDArray[_S], b: _NDArray[_S], out: None = None, alpha: complex = 1, beta: complex = 0, *, dtype: None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def matmul(
    a: _Array, b: _Array, out: None = None, alpha: complex = 1, beta: complex = 0, *, dtype: _DTypeLike | None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip
@_overload
def matmul(
    a: _X, b: _Operand, out: None = None, alpha: complex = 1, beta: complex = 0, *, dtype: _DTypeLike | None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def matmul(
    a: Packed, b: _X, out: None = None, alpha: complex = 1, beta: complex = 0, *, dtype: _DTypeLike | None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def matmul(
    a: _ArrayLike, b: _ArrayLike, out: None = None, alpha: complex = 1, beta: complex = 0, *, dtype: _DTypeLike | None = None,
    activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None, out_scale: float = 1,
    column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip

@_overload
def grouped_matmul(
    a: _Operand, b: _Operand, offsets: _Operand, out: _C, alpha: complex = 1, beta: complex = 0, *, handle: Handle | None = None,
) -> _C: ...  # fmt: skip
@_overload
def grouped_matmul(
    a: _NDArray[_S], b: _NDArray[_S], offsets: _Operand, out: None = None, alpha: complex = 1, beta: complex = 0, *,
    handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def grouped_matmul(
    a: _X, b: _Operand, offsets: _Operand, out: None = None, alpha: complex = 1, beta: complex = 0, *, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def grouped_matmul(
    a: _ArrayLike, b: _ArrayLike, offsets: _Operand, out: None = None, alpha: complex = 1, beta: complex = 0, *,
    handle: Handle | None = None,
) -> _Array: ...  # fmt: skip

def explain(
    a: _Operand, b: _Operand, out: _OnDevice | None = None, alpha: complex = 1, beta: complex = 0, *, handle: Handle | None = None,
) -> dict[str, str]: ...  # fmt: skip
def explain_level3(
    routine: _Literal["symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "solve_triangular"],
    *args: object, **kwargs: object,
) -> dict[str, str]: ...  # fmt: skip
def workspace_size(
    a: _Operand, b: _Operand, out: _OnDevice | None = None, alpha: complex = 1, beta: complex = 0, *,
    dtype: _DTypeLike | None = None, activation: _Activation | None = None, bias: _Operand | None = None,
    residual: _Operand | None = None, out_scale: float = 1, column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> int: ...  # fmt: skip
def packed_size(
    x: _Operand, side: _Literal["a", "b"] = "b", *, trans: int = 0, order: _Literal["C", "F"] = "C", handle: Handle | None = None,
) -> int: ...  # fmt: skip
def prepack(
    x: _Operand, side: _Literal["a", "b"] = "b", *, trans: int = 0, order: _Literal["C", "F"] = "C",
    memory: _OnDevice | None = None, handle: Handle | None = None,
) -> Packed: ...  # fmt: skip

@_overload
def gemm(
    alpha: complex, a: _NDArray[_S], b: _NDArray[_S], beta: complex = 0, c: _NDArray[_S] | None = None, trans_a: int = 0,
    trans_b: int = 0, overwrite_c: int = 0, *, activation: _Activation | None = None, bias: _Operand | None = None,
    residual: _Operand | None = None, out_scale: float = 1, column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def gemm(
    alpha: complex, a: _X, b: _Operand, beta: complex = 0, c: _OnDevice | None = None, trans_a: int = 0, trans_b: int = 0,
    overwrite_c: int = 0, *, activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None,
    out_scale: float = 1, column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def gemm(
    alpha: complex, a: Packed, b: _X, beta: complex = 0, c: _OnDevice | None = None, trans_a: int = 0, trans_b: int = 0,
    overwrite_c: int = 0, *, activation: _Activation | None = None, bias: _Operand | None = None, residual: _Operand | None = None,
    out_scale: float = 1, column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def gemm(
    alpha: complex, a: _ArrayLike, b: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, trans_a: int = 0,
    trans_b: int = 0, overwrite_c: int = 0, *, activation: _Activation | None = None, bias: _Operand | None = None,
    residual: _Operand | None = None, out_scale: float = 1, column_sums: _OnDevice | None = None, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip

class _TypedGemm(_Protocol[_T_co]):
    @_overload
    def __call__(
        self, alpha: complex, a: _X, b: _Operand, beta: complex = 0, c: _OnDevice | None = None, trans_a: int = 0, trans_b: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _X: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _ArrayLike, b: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, trans_a: int = 0,
        trans_b: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _NDArray[_T_co]: ...  # fmt: skip

hgemm: _TypedGemm[_np.float16]
sgemm: _TypedGemm[_np.float32]
dgemm: _TypedGemm[_np.float64]
cgemm: _TypedGemm[_np.complex64]
zgemm: _TypedGemm[_np.complex128]
bgemm: _TypedGemm[_np.generic]

class _Structured(_Protocol):
    @_overload
    def __call__(
        self, alpha: complex, a: _NDArray[_S], b: _NDArray[_S], beta: complex = 0, c: _NDArray[_S] | None = None, side: _Side = 0,
        lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _NDArray[_S]: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _X, b: _Operand, beta: complex = 0, c: _OnDevice | None = None, side: _Side = 0, lower: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _X: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _ArrayLike, b: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, side: _Side = 0,
        lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _Array: ...  # fmt: skip

symm: _Structured
hemm: _Structured

class _RankK(_Protocol):
    @_overload
    def __call__(
        self, alpha: complex, a: _NDArray[_S], beta: complex = 0, c: _NDArray[_S] | None = None, trans: _Trans = 0, lower: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _NDArray[_S]: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _X, beta: complex = 0, c: _OnDevice | None = None, trans: _Trans = 0, lower: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _X: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, trans: _Trans = 0, lower: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _Array: ...  # fmt: skip

syrk: _RankK
herk: _RankK

class _Rank2K(_Protocol):
    @_overload
    def __call__(
        self, alpha: complex, a: _NDArray[_S], b: _NDArray[_S], beta: complex = 0, c: _NDArray[_S] | None = None, trans: _Trans = 0,
        lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _NDArray[_S]: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _X, b: _Operand, beta: complex = 0, c: _OnDevice | None = None, trans: _Trans = 0, lower: int = 0,
        overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _X: ...  # fmt: skip
    @_overload
    def __call__(
        self, alpha: complex, a: _ArrayLike, b: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, trans: _Trans = 0,
        lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
    ) -> _Array: ...  # fmt: skip

syr2k: _Rank2K
her2k: _Rank2K

@_overload
def gemmtr(
    alpha: complex, a: _NDArray[_S], b: _NDArray[_S], beta: complex = 0, c: _NDArray[_S] | None = None, trans_a: _Trans = 0,
    trans_b: _Trans = 0, lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def gemmtr(
    alpha: complex, a: _X, b: _Operand, beta: complex = 0, c: _OnDevice | None = None, trans_a: _Trans = 0, trans_b: _Trans = 0,
    lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def gemmtr(
    alpha: complex, a: _ArrayLike, b: _ArrayLike, beta: complex = 0, c: _ArrayLike | None = None, trans_a: _Trans = 0,
    trans_b: _Trans = 0, lower: int = 0, overwrite_c: int = 0, *, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip

@_overload
def trmm(
    alpha: complex, a: _NDArray[_S], b: _NDArray[_S], side: _Side = 0, lower: int = 0, trans: _Trans = 0, unit_diagonal: int = 0,
    overwrite_b: int = 0, *, handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def trmm(
    alpha: complex, a: _X, b: _Operand, side: _Side = 0, lower: int = 0, trans: _Trans = 0, unit_diagonal: int = 0,
    overwrite_b: int = 0, *, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def trmm(
    alpha: complex, a: _ArrayLike, b: _ArrayLike, side: _Side = 0, lower: int = 0, trans: _Trans = 0, unit_diagonal: int = 0,
    overwrite_b: int = 0, *, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip

@_overload
def solve_triangular(
    a: _NDArray[_S], b: _NDArray[_S], trans: _Trans = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, *, alpha: complex = 1, side: _Side = 0, handle: Handle | None = None,
) -> _NDArray[_S]: ...  # fmt: skip
@_overload
def solve_triangular(
    a: _X, b: _Operand, trans: _Trans = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False, *,
    alpha: complex = 1, side: _Side = 0, handle: Handle | None = None,
) -> _X: ...  # fmt: skip
@_overload
def solve_triangular(
    a: _ArrayLike, b: _ArrayLike, trans: _Trans = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False, *,
    alpha: complex = 1, side: _Side = 0, handle: Handle | None = None,
) -> _Array: ...  # fmt: skip
