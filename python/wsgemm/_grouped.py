"""grouped_matmul: many products of different sizes, which lie one behind the other, for arrays in host memory and on GPUs.

On a GPU the offsets may lie there, too: the host neither reads them nor waits for them.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import _lib
from ._arrays import (
    Array,
    Kind,
    address,
    as_array,
    check_out,
    element_strides,
    kind_of,
    kind_of_result,
    locate,
    may_share,
    needs_out,
    scalars_of,
)
from ._device import Argument, View, argument, c_strides
from ._device_product import Operands, arguments, check_device_out
from ._device_product import may_share as views_may_share
from ._handle import Handle, pointer_of
from ._layout import leading
from ._plans import way_of


class Form(NamedTuple):
    """What is ragged, and the axes of a, b and the result that are."""

    ragged: _lib.Ragged
    axis_a: int | None
    axis_b: int | None
    axis_c: int | None


# By the dimensions of a and b.
_FORMS = {
    (2, 3): Form(_lib.Ragged.RAGGED_M, 0, None, 0),
    (3, 2): Form(_lib.Ragged.RAGGED_N, None, 1, 1),
    (2, 2): Form(_lib.Ragged.RAGGED_K, 1, 0, None),
}


def grouped_matmul(
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    offsets: ArrayLike | Any,
    out: Any = None,
    alpha: complex = 1,
    beta: complex = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    """The products of groups of rows, or columns, each with a matrix of its own: alpha * (a[g] @ b[g]) +
    beta * out[g].

    Args:
        a, b: arrays of one type, as matmul takes them. What they are by their dimensions:

            - (m, k) and (groups, k, n): group g is rows offsets[g - 1] .. offsets[g] - 1 of `a` and of
              the result (m, n), as of tokens that are sorted by their experts;
            - (groups, m, k) and (k, n): group g is these columns of `b` and of the result (m, n);
            - (m, k) and (k, n): group g is these columns of `a` and rows of `b`; the result is (groups,
              m, n), as of the gradient of the experts' weights.
        offsets: where each group ends, the first one beginning at 0: whole numbers that do not
            decrease, (groups,). Groups may be empty. Of arrays on a GPU: in host memory, or int32 or
            int64 on that GPU.
        out: where the result goes: of the result's type and shape (of half-precision operands also
            another half precision, or float32), without overlap with `a` or `b`. What lies behind the
            last offset stays as it is.
        alpha, beta, handle: as in matmul.

    Returns:
        out, or a new C-ordered array, in which zeros are behind the last offset; on a GPU anything.

    Raises:
        TypeError, OverflowError: as matmul.
        ValueError: shapes do not fit, offsets decrease or exceed the array, out overlaps an operand, or
            beta without out.
        WsgemmError: the library could not do it.

    Offsets on a GPU are read there, when the product begins: the call returns at once, and a graph that
    it is captured into may be replayed with other offsets. A group whose end lies before its beginning,
    or beyond the array, is left out. The library has this on compute capability 9.0, of half precision
    fastest where C-ordered matrices, and transposes of what is ragged along k, begin at multiples of 16
    bytes (wsgemm_gemm_grouped in wsgemm.h); elsewhere it raises WsgemmError (NOT_SUPPORTED).
    """
    way = None if type(a) is np.ndarray else way_of(a)
    if way is not None and not way.is_recorded(a, b, out):
        done = way.grouped(a, b, offsets, out, alpha, beta, handle, describe_groups)
        if done is not None:
            return done
    with ExitStack() as closing:
        found = arguments({"a": a, "b": b, "out": out}, ("out",))
        ends = argument("offsets", offsets)
        if found is not None:
            on_a, on_b = found["a"], found["b"]
            assert on_a is not None and on_b is not None
            operands = Operands(closing, on_a, on_b, found["out"], {"offsets": ends})
            return _on_device(operands, offsets, alpha, beta, handle)
        if ends is not None:
            raise TypeError("offsets lies on a GPU and the arrays in host memory; pass it in host memory, too")
    return _on_host(a, b, offsets, out, alpha, beta, handle)


def _form_of(n_dims_a: int, n_dims_b: int) -> Form:
    form = _FORMS.get((n_dims_a, n_dims_b))
    if form is None:
        raise ValueError(f"a has {n_dims_a} dimensions and b {n_dims_b}; they must have 2 and 3, 3 and 2, or 2 and 2")
    return form


def _shape_of(a: tuple[int, ...], b: tuple[int, ...], form: Form, n_groups: int) -> tuple[int, ...]:
    if a[-1] != b[-2]:
        raise ValueError(f"a has {a[-1]} columns and b {b[-2]} rows; they must be as many")
    for shape, name in ((a, "a"), (b, "b")):
        if len(shape) == 3 and shape[0] != n_groups:
            raise ValueError(f"{name} has {shape[0]} matrices and there are {n_groups} offsets; they must be as many")
    return (n_groups, a[-2], b[-1]) if form.axis_c is None else (a[-2], b[-1])


# ---- offsets in host memory --------------------------------------------------------------------------------------------------


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


# ---- descriptors -------------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Matrices in memory: the first one's address, whether they are row-major, leading dimension, stride
    from one to the next.
    """

    address: int
    is_by_rows: bool
    ld: int
    stride: int


class Ends(NamedTuple):
    address: int
    itemsize: int
    n_groups: int


def _describe(
    kind: Kind,
    kind_c: Kind,
    form: Form,
    sizes: tuple[int, int, int],
    places: tuple[Place, Place, Place],
    ends: Ends,
    scalars: Any,
) -> _lib.GroupedDesc:
    a, b, c = places
    desc = _lib.GroupedDesc(struct_bytes=ctypes.sizeof(_lib.GroupedDesc), ragged=form.ragged, out_scale=1)
    desc.index_bytes = ends.itemsize
    desc.layout = _lib.Layout.ROW_MAJOR if c.is_by_rows else _lib.Layout.COL_MAJOR
    desc.transa = _lib.Op.NO_TRANS if a.is_by_rows == c.is_by_rows else _lib.Op.TRANS
    desc.transb = _lib.Op.NO_TRANS if b.is_by_rows == c.is_by_rows else _lib.Op.TRANS
    desc.type_a = desc.type_b = kind.code
    desc.type_c, desc.type_scalar = kind_c.code, kind.scalar_code
    desc.group_count, desc.offsets = ends.n_groups, ends.address
    desc.m, desc.n, desc.k = sizes
    for scalar, re, im in ((desc.alpha, *scalars[:2]), (desc.beta, *scalars[2:])):
        if kind.scalar.bits == 32:
            scalar.c.re, scalar.c.im = re, im
        else:
            scalar.z.re, scalar.z.im = re, im
    desc.a, desc.lda, desc.stride_a = a.address, a.ld, a.stride
    desc.b, desc.ldb, desc.stride_b = b.address, b.ld, b.stride
    desc.c, desc.ldc, desc.stride_c = c.address, c.ld, c.stride
    return desc


def _call(pointer: int | None, desc: _lib.GroupedDesc) -> None:
    _lib.check(_lib.library.wsgemm_gemm_grouped(pointer, ctypes.byref(desc)))


def describe_groups(
    a: View, b: View, out: View | None, ends: View, alpha: complex, beta: complex
) -> tuple[Kind, _lib.GroupedDesc, tuple[int, ...]]:
    """(the operands' kind, the descriptor, the result's shape) of arrays on a GPU, whose addresses do not
    count, as they are; what needs a copy, or is wrong, is a ValueError or a TypeError.
    """
    kind = kind_of(a, b)
    _check_ends_view(ends)
    form = _form_of(len(a.shape), len(b.shape))
    n_groups = ends.shape[0]
    shape = _shape_of(a.shape, b.shape, form, n_groups)
    view = View(a.dtype, shape, c_strides(shape), 0) if out is None else out
    kind_c = kind if out is None else kind_of_result(kind, a, out.dtype, "out")
    by_rows = form.ragged is not _lib.Ragged.RAGGED_N
    at_a, at_b, at_c = _place_of(a, form.ragged is _lib.Ragged.RAGGED_M), _place_of(b, by_rows), _place_of(view, by_rows)
    if view.shape != shape or at_a is None or at_b is None or at_c is None:
        raise ValueError("the long way copies, or says what is wrong")
    sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
    described = _describe(
        kind, kind_c, form, sizes, (at_a, at_b, at_c), Ends(0, ends.dtype.itemsize, n_groups), scalars_of(kind, alpha, beta)
    )
    return kind, described, shape


# ---- in host memory ----------------------------------------------------------------------------------------------------------


def _on_host(a: Any, b: Any, offsets: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None) -> Any:
    a, b = as_array(a, "a"), as_array(b, "b")
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    ends = _ends_of(offsets)
    form = _form_of(a.ndim, b.ndim)
    shape = _shape_of(a.shape, b.shape, form, len(ends))
    _check_ends(ends, a.shape[1] if form.axis_a == 1 else shape[form.axis_c or 0])
    if out is None:
        if beta != 0:
            raise needs_out(beta)
        result, kind_c = np.empty(shape, a.dtype), kind
        if form.axis_c is not None:
            last = int(ends[-1]) if len(ends) else 0
            result[(slice(None),) * form.axis_c + (slice(last, None),)] = 0
    else:
        kind_c, result = check_out(out, kind, a, shape), out
        if may_share(out, a) or may_share(out, b):
            raise ValueError("out overlaps a or b; it must not")
    if result.size:
        (a, at_a), (b, at_b), (_, at_c) = _place(a, "a"), _place(b, "b"), _place(result, "out", True)
        sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
        places = (at_a, at_b, at_c)
        desc = _describe(kind, kind_c, form, sizes, places, Ends(address(ends), ends.itemsize, len(ends)), scalars)
        _call(None if handle is None else pointer_of(handle), desc)
    return result


def _place(x: Array, name: str, is_written: bool = False) -> tuple[Array, Place]:
    """(x, or a copy that BLAS can express; where it lies)"""
    rows, cols = x.shape[-2:]
    if x.size == 0:
        return x, Place(address(x), True, max(1, cols), 0)
    one = x if x.ndim == 2 else x[0]
    found, strides = locate(one, rows, cols), element_strides(x)
    if found is None or strides is None:
        if is_written:
            raise ValueError(f"{name} has strides that BLAS cannot express; pass a contiguous one")
        return _place(np.ascontiguousarray(x), name)
    return x, Place(address(x), found[0], found[1], strides[0] if x.ndim == 3 else 0)


# ---- on a GPU ----------------------------------------------------------------------------------------------------------------


def _on_device(ops: Operands, offsets: Any, alpha: complex, beta: complex, handle: Handle | None) -> Any:
    a, b = ops.view(ops.a), ops.view(ops.b)
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    form = _form_of(len(a.shape), len(b.shape))
    on_gpu = ops.parts["offsets"]
    ends_view = None if on_gpu is None else _ends_view(ops, on_gpu)
    host_ends = np.empty(0, np.int64) if ends_view is not None else _ends_of(offsets)
    if ends_view is None:
        ends = Ends(address(host_ends), host_ends.itemsize, len(host_ends))
    else:
        ends = Ends(ends_view.address, ends_view.dtype.itemsize, ends_view.shape[0])
    shape = _shape_of(a.shape, b.shape, form, ends.n_groups)
    _check_ends(host_ends, a.shape[1] if form.axis_a == 1 else shape[form.axis_c or 0])
    if ops.out is None and beta != 0:
        raise needs_out(beta)
    out = ops.empty(shape) if ops.out is None else ops.out
    view = ops.view(out)
    kind_c = kind if ops.out is None else check_device_out(out, view, kind, a, shape, "the result")
    if view.is_empty or ends.n_groups == 0:
        return out.given
    sizes = (a.shape[-2], b.shape[-1], a.shape[-1])
    by_rows = form.ragged is not _lib.Ragged.RAGGED_N  # what is ragged, as the kernel wants it where both ways are possible
    a, at_a = _device_place(ops, ops.a, a, view, form.ragged is _lib.Ragged.RAGGED_M)
    b, at_b = _device_place(ops, ops.b, b, view, by_rows)
    at_c = _place_of(view, by_rows)
    if at_c is None:
        raise ValueError(f"{out.name} has shape {view.shape} and strides {view.strides}; BLAS cannot write it, pass a contiguous one")
    views = {name: x for name, x in (("out", view), ("a", a), ("b", b)) if not x.is_empty}
    if ends_view is not None:
        views["offsets"] = ends_view
    desc = _describe(kind, kind_c, form, sizes, (at_a, at_b, at_c), ends, scalars)
    ops.run(views, handle, lambda pointer: _call(pointer, desc), [out])
    return out.given


def _ends_view(ops: Operands, offsets: Argument) -> View:
    view = ops.view(offsets)
    _check_ends_view(view)
    return view


def _check_ends_view(view: View) -> None:
    if len(view.shape) != 1:
        raise ValueError(f"offsets has {len(view.shape)} dimensions; it must have 1")
    if view.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise TypeError(f"offsets is {view.dtype.name}; on a GPU it must be int32 or int64")
    if not (view.is_contiguous and view.is_aligned):
        raise ValueError(f"offsets has strides {view.strides}; on a GPU it must be contiguous")


def _device_place(ops: Operands, x: Argument, view: View, out: View, by_rows: bool) -> tuple[View, Place]:
    """(x, or its library's copy that BLAS can express; where it lies)"""
    if views_may_share(view, out):
        raise ValueError(f"out may share memory with {x.name}; it must not")
    if view.is_conjugated:
        raise ValueError(f"{x.name} is a conjugated view; resolve it first")
    place = _place_of(view, by_rows)
    if place is None:
        view = ops.copied(x, f"has shape {view.shape} and strides {view.strides}, which BLAS cannot express")
        place = _place_of(view, by_rows)
        assert place is not None
    return view, place


def _place_of(x: View, by_rows: bool) -> Place | None:
    """by_rows: or the other way round, where it can be either."""
    rows, cols = x.shape[-2:]
    if x.is_empty:
        return Place(x.address, True, max(1, cols), 0)
    if x.strides is None or not x.is_aligned:
        return None
    row_step, col_step = x.strides[-2:]
    ld = leading(rows, cols, row_step, col_step) if by_rows else -leading(cols, rows, col_step, row_step)
    return Place(x.address, ld > 0, abs(ld), x.strides[0] if len(x.shape) == 3 else 0) if ld else None
