"""matmul: numpy.matmul's rules, for arrays in host memory and, through _device_product.py, in GPU memory."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _device_product, _epilogue
from ._arrays import KINDS, as_array, check_out, kind_of, needs_out, scalars_of, type_of_result
from ._epilogue import Epilogue
from ._handle import Handle, pointer_of
from ._packed import unpacked
from ._plans import NUMPY, way_of
from ._product import Options, matmul_shapes, prepare, run, run_matrix

_ndarray, _empty = np.ndarray, np.empty


def matmul(
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    out: Any = None,
    alpha: complex = 1,
    beta: complex = 0,
    *,
    dtype: DTypeLike | None = None,
    activation: str | None = None,
    bias: ArrayLike | None = None,
    residual: ArrayLike | None = None,
    out_scale: float = 1,
    column_sums: Any = None,
    handle: Handle | None = None,
) -> Any:
    """The matrix product alpha * (a @ b) + beta * out, with numpy.matmul's shape rules; if asked for,
    out_scale * activation(product + bias) + residual of it, rounded once.

    Args:
        a, b: float16, float32, float64, complex64, complex128, or ml_dtypes' bfloat16, both the same;
            (..., m, k) and (..., k, n), whose leading dimensions broadcast. A 1-D `a` counts as one row
            and a 1-D `b` as one column, which is dropped from the result. Anything that numpy.asarray
            makes an array of will do, or arrays in GPU memory (below). Rows, columns, transposes and
            slices with one unit stride and a longer other one are read where they lie; negative,
            repeated or two non-unit strides are copied first. In place of an array, what prepack() has
            made of it.
        out: where the result goes: an array of the same type and of the result's shape, in any layout.
            It may overlap `a` or `b`, which are then copied first. Of half-precision operands it may
            also be of the other half precision, or float32.
        alpha, beta: numbers, real if the arrays are. beta != 0 needs `out`; beta = 0 never reads it.
        dtype: the result's type, of those that `out` may have: float32 of half-precision operands keeps
            what is summed in it. The operands are not converted. None: `out`'s, else that of the
            operands.
        activation: "relu", "gelu_tanh", "gelu_erf" or "silu", applied to each element after the bias;
            None: none.
        bias: added to each row of the product, if it is of the shape of one, (..., n) or (..., 1, n),
            or to each column, if of that shape, (..., m, 1); broadcast over the stack. Of the result's
            type, or float32 where that is half precision.
        residual: added at the end: of the result's type and shape. It may be `out`, whose old elements
            it then is.
        out_scale: multiplies what the activation gives.
        column_sums: where the sums of the result's columns go: a C-ordered array of shape (..., n) for
            a result of (..., m, n), float64 if the result is, else float32.
        handle: threads, policy and kernel of this call; None: the process's default handle.

    These five take real arrays; all steps are made in single precision (float64: in double) before the
    only rounding. See wsgemm_epilogue in wsgemm.h.

    Returns:
        out, or a new C-ordered array; a scalar if both operands are 1-D and there is no out.

    Raises:
        TypeError: types are mixed or not among these, a masked array is given, or some arrays lie in
            host memory and some on a GPU.
        ValueError: shapes do not fit, out is read-only, or beta without out.
        OverflowError: alpha or beta is beyond the arrays' type.
        WsgemmError: the library could not do it.

    On a GPU: `a`, `b`, `out`, and all arrays of the epilogue, may be CUDA arrays of torch, cupy or jax,
    or of any library that has ``__cuda_array_interface__`` or DLPack; all on one GPU. They are read and
    written where they lie. The product runs on the library's current stream, after what is there
    already, and the call returns at once; with streams of several libraries, each waits for the
    other's. Where a library does not tell its stream (jax, and DLPack without the interface), the call
    returns when the product is done. What differs from host memory:

    - arrays may also be bfloat16 of torch, cupy or jax, or of what DLPack or a dtype of its own calls
      so, without ml_dtypes; `dtype` may be torch's, or "bfloat16";
    - the result is a new array of the library of `a`, else of `b`; with two 1-D operands it has no
      dimensions. Libraries other than the three are not asked for one: pass `out`;
    - operands that must be copied are copied by torch or cupy on their stream; those of other libraries
      are a ValueError, and so is an `out` that is not a matrix (or stack) with one unit stride, or that
      is a jax array, which cannot be written, or a `column_sums` that is not contiguous or shares
      memory with another argument;
    - torch: the gradient of a plain a @ b is recorded where an operand requires one, and torch.compile
      and torch.func see the product (wsgemm.torch has more); with `out`, alpha, beta, dtype, handle or
      an epilogue operands that require one are a TypeError, except under torch.no_grad().
    """
    epilogue = None
    if activation is not None or bias is not None or residual is not None or column_sums is not None or out_scale != 1:
        epilogue = Epilogue(activation, bias, residual, out_scale, column_sums)
    if type(a) is _ndarray and type(b) is _ndarray:
        if epilogue is None and dtype is None and (out is None or type(out) is _ndarray):
            done = NUMPY.matmul(a, b, out, alpha, beta, handle, None, None, False)
            if done is not None:
                return done
    else:
        way = way_of(a) or way_of(b)
        if way is not None:
            done = way.product(a, b, out, alpha, beta, dtype, epilogue, handle)
            if done is not None:
                return done
    if epilogue or type(a) is not _ndarray or type(b) is not _ndarray or (out is not None and type(out) is not _ndarray):
        a, record_a = unpacked(a, "a")
        b, record_b = unpacked(b, "b")
        with ExitStack() as closing:
            operands = _device_product.operands(closing, a, b, out, epilogue=epilogue, records=(record_a, record_b))
            if operands is not None:
                return _device_product.matmul(operands, dtype, alpha, beta, epilogue, handle)
        a, b = as_array(a, "a"), as_array(b, "b")
    if epilogue:
        return _epilogue.matmul(a, b, out, dtype, alpha, beta, epilogue, handle)
    kind = KINDS.get(a.dtype)
    if kind is None or b.dtype is not a.dtype:
        kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    pointer = None if handle is None else pointer_of(handle)
    if out is None and beta != 0:
        raise needs_out(beta)
    result_dtype, kind_c = (a.dtype, kind) if dtype is None else type_of_result(kind, a, out, dtype)
    if a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0] and (out is not None or kind_c is kind):
        if out is not None:
            kind_c = check_out(out, kind, a, (a.shape[0], b.shape[1]))
        done = run_matrix(kind, kind_c, a, b, out, scalars, pointer)
        if done is not None:
            return done
    full_a, full_b, full_shape, shape = matmul_shapes(a, b)
    if out is None:
        result = _empty(shape, result_dtype)
    else:
        kind_c = check_out(out, kind, a, shape)
        result = out
    if result.size:
        full_out = np.asarray(result).reshape(full_shape)  # inserts dimensions of 1: never a copy
        is_vector = len(full_shape) == 2 and (len(shape) < 2 or kind_c is not kind)
        if not is_vector or run_matrix(kind, kind_c, full_a, full_b, full_out, scalars, pointer) is None:
            run(prepare(kind, full_a, full_b, full_out, out is None, Options(scalars, beta != 0, kind_c)), pointer)
    return result[()] if out is None and not shape else result
