"""grouped_matmul: many products of different sizes, which lie one behind the other, for arrays in host memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _lib
from ._arrays import Array, Kind, address, as_array, check_out, element_strides, kind_of, locate, may_share, needs_out, scalars_of
from ._handle import Handle, pointer_of

# By the dimensions of a and b: what is ragged, and the axes of a, b and the result that are.
_FORMS = {
    (2, 3): (_lib.Ragged.RAGGED_M, 0, None, 0),
    (3, 2): (_lib.Ragged.RAGGED_N, None, 1, 1),
    (2, 2): (_lib.Ragged.RAGGED_K, 1, 0, None),
}


def grouped_matmul(
    a: ArrayLike,
    b: ArrayLike,
    offsets: ArrayLike,
    out: Any = None,
    alpha: complex = 1,
    beta: complex = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    """The products of groups of rows, or columns, each with a matrix of its own: alpha * (a[g] @ b[g]) + beta * out[g].

    Args:
        a, b: arrays of one type, as matmul takes them, in host memory. What they are by their dimensions:

            - (m, k) and (groups, k, n): group g is rows offsets[g - 1] .. offsets[g] - 1 of `a` and of the result (m, n), as of
              tokens that are sorted by their experts;
            - (groups, m, k) and (k, n): group g is these columns of `b` and of the result (m, n);
            - (m, k) and (k, n): group g is these columns of `a` and rows of `b`; the result is (groups, m, n), as of the
              gradient of the experts' weights.
        offsets: where each group ends, the first one beginning at 0: whole numbers that do not decrease, (groups,). Groups may
            be empty.
        out: where the result goes: of the result's type and shape (of half-precision operands also another half precision, or
            float32), without overlap with `a` or `b`. What lies behind the last offset stays as it is.
        alpha, beta, handle: as in matmul.

    Returns:
        out, or a new C-ordered array, in which zeros are behind the last offset.

    Raises:
        TypeError, OverflowError: as matmul.
        ValueError: shapes do not fit, offsets decrease or exceed the array, out overlaps an operand, or beta without out.
        WsgemmError: the library could not do it.
    """
    a, b = as_array(a, "a"), as_array(b, "b")
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    ends = _ends_of(offsets)
    form = _FORMS.get((a.ndim, b.ndim))
    if form is None:
        raise ValueError(f"a has {a.ndim} dimensions and b {b.ndim}; they must have 2 and 3, 3 and 2, or 2 and 2")
    ragged, axis_a, _, axis_c = form
    shape = _shape_of(a, b, ragged, len(ends))
    total = a.shape[1] if axis_a == 1 else shape[axis_c or 0]
    _check_ends(ends, total)
    if out is None:
        if beta != 0:
            raise needs_out(beta)
        result, kind_c = np.empty(shape, a.dtype), kind
        if axis_c is not None:
            last = int(ends[-1]) if len(ends) else 0
            result[(slice(None),) * axis_c + (slice(last, None),)] = 0
    else:
        kind_c, result = check_out(out, kind, a, shape), out
        if may_share(out, a) or may_share(out, b):
            raise ValueError("out overlaps a or b; it must not")
    if result.size:
        _run(kind, kind_c, ragged, a, b, result, ends, scalars, None if handle is None else pointer_of(handle))
    return result


def _ends_of(offsets: ArrayLike) -> Array:
    ends = np.asarray(offsets)
    if ends.ndim != 1:
        raise ValueError(f"offsets has {ends.ndim} dimensions; it must have 1")
    if ends.size and ends.dtype.kind not in "iu":
        raise TypeError(f"offsets is {ends.dtype.name}; it must be of whole numbers")
    return np.ascontiguousarray(ends, np.int32 if ends.dtype == np.int32 else np.int64)


def _check_ends(ends: Array, total: int) -> None:
    before = np.concatenate((np.zeros(1, ends.dtype), ends[:-1]))
    falls = np.flatnonzero(ends < before)
    if falls.size:
        raise ValueError(f"offsets[{falls[0]}] is {ends[falls[0]]}; it must be at least {before[falls[0]]}")
    if ends.size and ends[-1] > total:
        raise ValueError(f"offsets[{ends.size - 1}] is {ends[-1]}; there are only {total}")


def _shape_of(a: Array, b: Array, ragged: _lib.Ragged, n_groups: int) -> tuple[int, ...]:
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"a has {a.shape[-1]} columns and b {b.shape[-2]} rows; they must be as many")
    for x, name in ((a, "a"), (b, "b")):
        if x.ndim == 3 and x.shape[0] != n_groups:
            raise ValueError(f"{name} has {x.shape[0]} matrices and there are {n_groups} offsets; they must be as many")
    one = (a.shape[-2], b.shape[-1])
    return (n_groups, *one) if ragged is _lib.Ragged.RAGGED_K else one


def _place(x: Array, name: str, is_written: bool = False) -> tuple[Array, bool, int, int]:
    """(x, or a copy that BLAS can express; whether it is row-major, leading dimension, stride from matrix to matrix)"""
    rows, cols = x.shape[-2:]
    if x.size == 0:
        return x, True, max(1, cols), 0
    one = x if x.ndim == 2 else x[0]
    found, strides = locate(one, rows, cols), element_strides(x)
    if found is None or strides is None:
        if is_written:
            raise ValueError(f"{name} has strides that BLAS cannot express; pass a contiguous one")
        return _place(np.ascontiguousarray(x), name)
    return x, found[0], found[1], strides[0] if x.ndim == 3 else 0


def _run(
    kind: Kind, kind_c: Kind, ragged: _lib.Ragged, a: Array, b: Array, c: Array, ends: Array, scalars: Any, pointer: Any
) -> None:
    a, a_by_rows, lda, stride_a = _place(a, "a")
    b, b_by_rows, ldb, stride_b = _place(b, "b")
    c, c_by_rows, ldc, stride_c = _place(c, "out", True)
    desc = _lib.GroupedDesc(struct_bytes=ctypes.sizeof(_lib.GroupedDesc), ragged=ragged, index_bytes=ends.itemsize, out_scale=1)
    desc.layout = _lib.Layout.ROW_MAJOR if c_by_rows else _lib.Layout.COL_MAJOR
    desc.transa = _lib.Op.NO_TRANS if a_by_rows == c_by_rows else _lib.Op.TRANS
    desc.transb = _lib.Op.NO_TRANS if b_by_rows == c_by_rows else _lib.Op.TRANS
    desc.type_a = desc.type_b = kind.code
    desc.type_c, desc.type_scalar = kind_c.code, kind.scalar_code
    desc.group_count, desc.offsets = len(ends), address(ends)
    desc.m, desc.n, desc.k = a.shape[-2], b.shape[-1], a.shape[-1]
    for scalar, re, im in ((desc.alpha, *scalars[:2]), (desc.beta, *scalars[2:])):
        if kind.scalar.bits == 32:
            scalar.c.re, scalar.c.im = re, im
        else:
            scalar.z.re, scalar.z.im = re, im
    desc.a, desc.lda, desc.stride_a = address(a), lda, stride_a
    desc.b, desc.ldb, desc.stride_b = address(b), ldb, stride_b
    desc.c, desc.ldc, desc.stride_c = address(c), ldc, stride_c
    _lib.check(_lib.library.wsgemm_gemm_grouped(pointer, ctypes.byref(desc)))
