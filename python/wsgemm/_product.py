"""Products: from NumPy arrays to descriptors of the C library.

Decides which operand can be used where it lies and which must be copied, and calls wsgemm_gemm: run_matrix() for two matrices
that BLAS can express as they are, prepare() and run() for stacks and all the rest. The arithmetic of strides is left to
_layout.py, arrays in GPU memory to _device_product.py (which uses describe() and call()), the product to the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from . import _lib
from ._arrays import (
    Array,
    Kind,
    Scalars,
    address,
    element_strides,
    locate,
    may_share,
)
from ._layout import BatchPlan, broadcast_strides, leading, may_overlap_itself

# Plain ints: quicker to pack than enum members.
ROW_MAJOR, COL_MAJOR = int(_lib.Layout.ROW_MAJOR), int(_lib.Layout.COL_MAJOR)
NO_TRANS, TRANS = int(_lib.Op.NO_TRANS), int(_lib.Op.TRANS)
CONJUGATED = {NO_TRANS: int(_lib.Op.CONJ_NO_TRANS), TRANS: int(_lib.Op.CONJ_TRANS)}
INHERIT, BY_VALUE = int(_lib.Math.MATH_INHERIT), int(_lib.ScalarMode.SCALAR_VALUE)
NO_EPILOGUE = int(_lib.Epilogue.EPILOGUE_NONE)
DESC_BYTES = _lib.BASE_DESC_BYTES

_gemm = _lib.library.wsgemm_gemm
_ndarray, _empty = np.ndarray, np.empty


# ---- Two matrices ----------------------------------------------------------------------------------------------------------


def run_matrix(
    kind: Kind, kind_c: Kind, a: Array, b: Array, out: Array | None, scalars: Scalars, handle: int | None
) -> Array | None:
    """The short way for two matrices whose shapes fit: the product; None if something is empty, must be copied or may overlap.
    Without out, kind_c is kind."""
    m, k = a.shape
    n = b.shape[1]
    if not (m and n and k):
        return None
    at_a = locate(a, m, k)
    at_b = locate(b, k, n)
    if at_a is None or at_b is None:
        return None
    a_is_row, lda, address_a = at_a
    b_is_row, ldb, address_b = at_b
    if out is None:
        out = _empty((m, n), a.dtype)
        c_is_row, ldc, address_c = True, n, address(out)
    else:
        at_c = locate(out, m, n)
        if at_c is None:
            return None
        c_is_row, ldc, address_c = at_c
        itemsize = kind.itemsize
        end_c = address_c + _span(c_is_row, m, n, ldc) * kind_c.itemsize
        if address_a < end_c and address_c < address_a + _span(a_is_row, m, k, lda) * itemsize:
            return None
        if address_b < end_c and address_c < address_b + _span(b_is_row, k, n, ldb) * itemsize:
            return None
    code = kind.code
    alpha, alpha_im, beta, beta_im = scalars
    status = _gemm(
        handle,
        kind.pack(
            DESC_BYTES, ROW_MAJOR if c_is_row else COL_MAJOR,
            NO_TRANS if a_is_row is c_is_row else TRANS, NO_TRANS if b_is_row is c_is_row else TRANS,
            code, code, kind_c.code, kind.scalar_code, INHERIT, BY_VALUE, NO_EPILOGUE,
            m, n, k, alpha, alpha_im, beta, beta_im, address_a, lda, address_b, ldb, address_c, ldc, 1, 0, 0, 0,
        ),
    )  # fmt: skip
    if status:
        _lib.check(status)
    return out


def _span(is_row: bool, rows: int, cols: int, ld: int) -> int:
    # Elements from the first of a matrix to behind its last.
    return (rows - 1) * ld + cols if is_row else (cols - 1) * ld + rows


# ---- Stacks, copies, overlap -----------------------------------------------------------------------------------------------


class Options(NamedTuple):
    scalars: Scalars
    has_beta: bool
    kind_c: Kind
    conj_a: bool = False
    conj_b: bool = False


class Prepared(NamedTuple):
    """A product ready to run: the descriptors of its calls, and what had to be copied for them."""

    descs: Iterator[bytes]  # each a wsgemm_gemm_desc
    copies: tuple[str, ...]
    arrays: tuple[Array, ...]  # keeps the memory that descs point to
    out: Array  # where C goes
    temporary: Array | None  # to be copied to out at the end, if out itself cannot be expressed


def prepare(kind: Kind, a: Array, b: Array, out: Array, is_fresh: bool, options: Options) -> Prepared:
    """Plans out = alpha a b + beta out for arrays of two or more dimensions whose shapes fit; out holds one element or more.
    is_fresh: nobody else has seen out yet."""
    m, n = out.shape[-2:]
    k = a.shape[-1]
    stack = out.shape[:-2]
    copies = []
    temporary = None
    target = out
    strides_c = element_strides(out)
    if (
        strides_c is None
        or not leading(m, n, strides_c[-2], strides_c[-1])
        or (not is_fresh and may_overlap_itself(out.shape, strides_c))
    ):
        copies.append("out")
        target = temporary = np.array(out, order="C", copy=True) if options.has_beta else _empty(out.shape, out.dtype)
        strides_c = _packed_strides(target)
    if k == 0:  # C = beta C: a and b have no elements, and any strides will do
        strides_a: Sequence[int] = (*(0,) * len(stack), 1, 1)
        strides_b = strides_a
        address_a = address_b = 0
    else:
        avoid = None if is_fresh or temporary is not None else out
        a, strides_a, a_is_copy = operand(a, stack, avoid)
        b, strides_b, b_is_copy = operand(b, stack, avoid)
        copies += ["a"] * a_is_copy + ["b"] * b_is_copy
        address_a, address_b = address(a), address(b)
    plan = BatchPlan(m, n, max(k, 1), strides_a[-2:], strides_b[-2:], strides_c[-2:])
    if stack:
        plan.merge(stack, strides_a, strides_b, strides_c)
    descs = describe(kind, plan, k, options, (address_a, address_b, address(target)))
    return Prepared(descs, tuple(copies), (a, b, target), out, temporary)


def operand(x: Array, stack: tuple[int, ...], avoid: Array | None) -> tuple[Array, Sequence[int], bool]:
    """(x, or a copy that BLAS can express and that shares no memory with avoid; its strides, broadcast to the stack; whether it
    is a copy)"""
    strides = element_strides(x)
    is_copy = (
        strides is None
        or not leading(x.shape[-2], x.shape[-1], strides[-2], strides[-1])
        or (avoid is not None and may_share(x, avoid))
    )
    if strides is None or is_copy:
        x = np.array(once(x), order="C", copy=True)
        strides = _packed_strides(x)
    return x, broadcast_strides(x.shape, strides, stack) if stack else strides, is_copy


def once(x: Array) -> Array:
    """x with one matrix in each dimension of its stack that is broadcast (of stride 0): what need be copied of it."""
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides[:-2])]


def _packed_strides(x: Array) -> list[int]:
    strides = element_strides(x)
    assert strides is not None  # x was just made by NumPy, in C order
    return strides


def describe(kind: Kind, plan: BatchPlan, k: int, options: Options, addresses: tuple[int, int, int]) -> Iterator[bytes]:
    """The descriptors of the plan's calls, for the addresses of A, B and C."""
    lda, ldb, ldc = plan.leadings()
    transa = NO_TRANS if (lda > 0) == (ldc > 0) else TRANS
    transb = NO_TRANS if (ldb > 0) == (ldc > 0) else TRANS
    if kind.is_complex:
        transa = CONJUGATED[transa] if options.conj_a else transa
        transb = CONJUGATED[transb] if options.conj_b else transb
    layout = ROW_MAJOR if ldc > 0 else COL_MAJOR
    code, itemsize, kind_c = kind.code, kind.itemsize, options.kind_c
    batch, offsets = plan.calls()
    for offset_a, offset_b, offset_c in offsets:
        yield kind.pack(
            DESC_BYTES, layout, transa, transb, code, code, kind_c.code, kind.scalar_code, INHERIT, BY_VALUE, NO_EPILOGUE,
            plan.m, plan.n, k, *options.scalars,
            addresses[0] + offset_a * itemsize, abs(lda),
            addresses[1] + offset_b * itemsize, abs(ldb),
            addresses[2] + offset_c * kind_c.itemsize, abs(ldc),
            *batch,
        )  # fmt: skip


def call(descs: Iterable[bytes], handle: int | None) -> None:
    for desc in descs:
        status = _gemm(handle, desc)
        if status:
            _lib.check(status)


def run(prepared: Prepared, handle: int | None) -> None:
    call(prepared.descs, handle)
    if prepared.temporary is not None:
        np.copyto(prepared.out, prepared.temporary)


# ---- Shapes ----------------------------------------------------------------------------------------------------------------


class Shapes(NamedTuple):
    full_a: tuple[int, ...]  # of a as a matrix or a stack of them
    full_b: tuple[int, ...]
    full_out: tuple[int, ...]
    out: tuple[int, ...]  # as NumPy returns it


def common_stack(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> tuple[int, ...]:
    """What the stacks of two operands are broadcast to."""
    stack_a, stack_b = shape_a[:-2], shape_b[:-2]
    if stack_a == stack_b:
        return stack_a
    try:
        return np.broadcast_shapes(stack_a, stack_b)
    except ValueError:
        raise ValueError(
            f"a has shape {shape_a} and b has shape {shape_b}, whose stacks {stack_a} and {stack_b} do not broadcast"
        ) from None


def product_shapes(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> Shapes:
    """numpy.matmul's shape rules."""
    if not shape_a or not shape_b:
        raise ValueError(f"a has shape {shape_a} and b has shape {shape_b}, but both need at least one dimension")
    full_a = (1, *shape_a) if len(shape_a) == 1 else shape_a
    full_b = (*shape_b, 1) if len(shape_b) == 1 else shape_b
    n_cols, n_rows = full_a[-1], full_b[-2]
    if n_cols != n_rows:
        raise ValueError(
            f"a has shape {shape_a} and b has shape {shape_b}, which do not fit: {n_cols} columns of a, {n_rows} rows of b"
        )
    stack = common_stack(shape_a, shape_b)
    matrix = (full_a[-2], full_b[-1])
    visible = (matrix[:1] if len(shape_a) > 1 else ()) + (matrix[1:] if len(shape_b) > 1 else ())
    return Shapes(full_a, full_b, stack + matrix, stack + visible)


def matmul_shapes(a: Array, b: Array) -> tuple[Array, Array, tuple[int, ...], tuple[int, ...]]:
    """(a, b as matrices or stacks of them, the product's full shape, its shape as NumPy returns it)."""
    shapes = product_shapes(a.shape, b.shape)
    full_a = a[np.newaxis, :] if a.ndim == 1 else a
    full_b = b[:, np.newaxis] if b.ndim == 1 else b
    return full_a, full_b, shapes.full_out, shapes.out


def gemm_shape(shape_a: tuple[int, ...], shape_b: tuple[int, ...], trans_a: int, trans_b: int) -> tuple[int, int]:
    """The shape of op(a) @ op(b)."""
    if len(shape_a) != 2 or len(shape_b) != 2:
        raise ValueError(f"a has shape {shape_a} and b has shape {shape_b}, but gemm takes matrices")
    for name, trans in (("trans_a", trans_a), ("trans_b", trans_b)):
        if trans not in (0, 1, 2):
            raise ValueError(f"{name} is {trans!r}, but it must be 0 (no), 1 (transpose) or 2 (conjugate transpose)")
    op_a = shape_a[::-1] if trans_a else shape_a
    op_b = shape_b[::-1] if trans_b else shape_b
    if op_a[1] != op_b[0]:
        raise ValueError(
            f"op(a) has shape {op_a} and op(b) has shape {op_b}, which do not fit: "
            f"{op_a[1]} columns of op(a) against {op_b[0]} rows of op(b)"
        )
    return op_a[0], op_b[1]
