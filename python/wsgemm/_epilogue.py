"""Epilogues: what matmul and gemm do to the result on its way to memory (bias, activation, scale, residual, column sums).

Checks the arguments against the result, for host and GPU memory alike, and makes the descriptors; of arrays in host memory also
copies what the library cannot read where it lies, and makes the calls. One call serves as many products of a stack as lie at
equal steps; unlike _layout.BatchPlan's, no products are joined to larger ones, as a bias or a column's sum belongs to one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _lib
from ._arrays import (
    Array,
    Kind,
    Scalars,
    address,
    as_array,
    check_out,
    check_shape,
    element_strides,
    kind_of,
    may_share,
    needs_out,
    number,
    scalars_of,
    type_of_result,
)
from ._device import View
from ._handle import Handle, pointer_of
from ._layout import Loop, OwnLoops, inside_and_outside, leading, loops_of, may_overlap_itself
from ._product import BY_VALUE, COL_MAJOR, INHERIT, NO_TRANS, ROW_MAJOR, TRANS, call, matmul_shapes, operand

ACTIVATIONS = {member.name[len("EPILOGUE_") :].lower(): member for member in _lib.Epilogue if member}
_PER_ROW, _PER_COLUMN = int(_lib.Bias.BIAS_PER_ROW), int(_lib.Bias.BIAS_PER_COLUMN)


class Epilogue(NamedTuple):
    """The arguments as the caller gave them."""

    activation: str | None
    bias: Any
    residual: Any
    out_scale: float
    column_sums: Any


class Result(NamedTuple):
    """What the arguments must fit."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]  # as NumPy returns it
    full_shape: tuple[int, ...]  # (..., m, n)
    is_row: bool  # a is 1-D
    is_column: bool  # b is 1-D

    def full(self, x: View) -> View:
        """x, of the result's shape, as a stack of matrices."""
        if self.is_column:
            x = x.insert(len(x.shape))
        return x.insert(len(x.shape) - 1) if self.is_row else x


class Steps(NamedTuple):
    """The arguments, checked, as the library takes them for a result of shape (..., m, n)."""

    activation: int
    out_scale: float
    bias: View | None = None  # (..., m) or (..., n), contiguous along the last axis
    bias_per: int = _PER_ROW
    residual: View | None = None  # (..., m, n)
    column_sums: View | None = None  # (..., n)


# ---- Arguments -------------------------------------------------------------------------------------------------------------


def steps_of(kind: Kind, epilogue: Epilogue) -> Steps:
    """What takes no array."""
    if kind.is_complex:
        raise TypeError(f"an epilogue takes real arrays, but a and b are {kind.name}")
    activation = 0
    if epilogue.activation is not None:
        if epilogue.activation not in ACTIVATIONS:
            raise ValueError(f"activation is {epilogue.activation!r}, but it must be one of {', '.join(map(repr, ACTIVATIONS))}")
        activation = int(ACTIVATIONS[epilogue.activation])
    return Steps(activation, number(kind, epilogue.out_scale, "out_scale", np.finfo(np.float64)).real)


def bias_vectors(bias: View, result: Result) -> tuple[View, int]:
    """(the vectors (..., m) or (..., n), which of the two they are); broadcast over the stack if they can be read as they lie"""
    if bias.dtype != result.dtype and not (bias.dtype == np.float32 and result.dtype.itemsize == 2):
        wanted = result.dtype.name + (" or float32" if result.dtype.itemsize == 2 else "")
        raise TypeError(f"bias is {bias.dtype.name}, but for a result of {result.dtype.name} it must be {wanted}")
    *stack, m, n = result.full_shape
    full = bias
    if result.is_column:
        full = full.insert(len(full.shape))
    if result.is_row:
        full = full.insert(max(len(full.shape) - 1, 0))
    if len(full.shape) == 1:
        full = full.insert(0)
    if len(full.shape) >= 2 and full.shape[-2:] == (1, n):
        vectors, bias_per = full.drop(-2), _PER_COLUMN
    elif len(full.shape) >= 2 and full.shape[-2:] == (m, 1):
        vectors, bias_per = full.drop(-1), _PER_ROW
    else:
        raise ValueError(
            f"bias has shape {bias.shape}, but for a result of shape {result.shape} it must be one row of it, or one column"
        )
    if not _broadcasts(vectors.shape[:-1], tuple(stack)):
        raise ValueError(f"bias has shape {bias.shape}, which does not broadcast to the result's, {result.shape}")
    return vectors, bias_per


def _broadcasts(shape: tuple[int, ...], stack: tuple[int, ...]) -> bool:
    # shape to stack
    try:
        return not shape or np.broadcast_shapes(shape, stack) == stack
    except ValueError:
        return False


def can_be_read(vectors: View) -> bool:
    return vectors.strides is not None and vectors.is_aligned and (vectors.strides[-1] == 1 or vectors.shape[-1] <= 1)


def check_residual(residual: View, result: Result) -> None:
    if residual.dtype != result.dtype:
        raise TypeError(f"residual is {residual.dtype.name}, but the result is {result.dtype.name}")
    check_shape(residual, result.shape, "residual", "the result")


def check_sums(sums: View, result: Result) -> None:
    *stack, _, n = result.full_shape
    dtype = np.dtype("float64" if result.dtype == np.float64 else "float32")
    shape = (*stack,) if result.is_column else (*stack, n)
    if sums.dtype != dtype:
        raise TypeError(f"column_sums is {sums.dtype.name}, but for a result of {result.dtype.name} it must be {dtype.name}")
    check_shape(sums, shape, "column_sums", "a row of the result")
    if sums.is_readonly:
        raise ValueError("column_sums is read-only")


# ---- Descriptors -----------------------------------------------------------------------------------------------------------


def lies_as(x: View, is_row: bool) -> int:
    """The leading dimension of x's matrices if they lie by rows (or else by columns), 0 if they do not."""
    if x.strides is None or not x.is_aligned:
        return 0
    (rows, cols), (down, across) = x.shape[-2:], x.strides[-2:]
    # By columns is the transpose, by rows.
    return max(leading(rows, cols, down, across) if is_row else leading(cols, rows, across, down), 0)


def is_by_rows(x: View) -> bool:
    """Of a result that BLAS can express."""
    assert x.strides is not None
    return leading(*x.shape[-2:], *x.strides[-2:]) > 0


def describe(
    kind: Kind,
    kind_c: Kind,
    a: View,
    b: View,
    c: View,
    scalars: Scalars,
    steps: Steps,
    own_loops: OwnLoops = (None, None),
) -> Iterator[bytes]:
    """The descriptors of the calls that make c, which is not empty. BLAS can read a and b where they lie, and write c; what `steps`
    has, the library can read and write where it lies."""
    stack, (m, n), k = c.shape[:-2], c.shape[-2:], a.shape[-1]
    is_row = is_by_rows(c)
    ldc = lies_as(c, is_row)
    arrays: list[View | None] = [None, None, c, None, None, None]
    lda = ldb = max(m, n) * (1 if is_row else -1)
    if k:  # else a and b have no elements
        arrays[:2] = a.broadcast(stack), b.broadcast(stack)
        lda, ldb = (leading(*x.shape[-2:], *(x.strides or ())[-2:]) for x in (a, b))
    ld_residual = type_bias = 0
    if steps.bias is not None:
        arrays[3] = steps.bias.broadcast(stack, 1)
        type_bias = int(_lib.Type.F32) if steps.bias.dtype == np.float32 else kind_c.code
    if steps.residual is not None:
        arrays[4] = steps.residual.broadcast(stack)
        ld_residual = ldc if steps.residual == c else lies_as(steps.residual, is_row)
    if steps.column_sums is not None:
        arrays[5] = steps.column_sums
    batch, outside, begins = _loops(stack, own_loops, *(_stack_strides(x, stack) for x in arrays))
    for offsets in _offsets(outside):
        at = [
            0 if x is None else x.address + (begin + offset) * x.dtype.itemsize
            for x, begin, offset in zip(arrays, begins, offsets)
        ]
        yield kind.pack(
            _lib.DESC_BYTES, ROW_MAJOR if is_row else COL_MAJOR,
            NO_TRANS if (lda > 0) == is_row else TRANS, NO_TRANS if (ldb > 0) == is_row else TRANS,
            kind.code, kind.code, kind_c.code, kind.scalar_code, INHERIT, BY_VALUE, steps.activation,
            m, n, k, *scalars, at[0], abs(lda), at[1], abs(ldb), at[2], ldc, batch[0], batch[1], batch[2], batch[3],
        ) + _lib.REST_FORMAT.pack(
            steps.bias_per, type_bias, at[3], batch[4], at[4], ld_residual, batch[5], steps.out_scale, at[5], batch[6], 0, 0
        )  # fmt: skip


def _stack_strides(x: View | None, stack: tuple[int, ...]) -> Sequence[int]:
    return [0] * len(stack) if x is None or x.strides is None else x.strides[: len(stack)]


def _loops(stack: tuple[int, ...], own_loops: OwnLoops, *strides: Sequence[int]) -> tuple[Loop, list[Loop], list[int]]:
    """(the loop that one call does, the loops round it, where each array begins)"""
    dimensions, begins = loops_of(stack, *strides, is_free=own_loops == (None, None))
    loops: list[Loop] = []
    for loop in dimensions:
        if loops and loop[1:] == tuple(loops[-1][0] * step for step in loops[-1][1:]):
            loops[-1] = (loops[-1][0] * loop[0], *loops[-1][1:])
        else:
            loops.append(loop)
    once = (1,) + (0,) * len(strides)
    inside, outside = inside_and_outside(loops, once, own_loops)
    return inside, [*outside, once], begins


def _offsets(loops: list[Loop]) -> Iterator[list[int]]:
    for idxs in itertools.product(*(range(loop[0]) for loop in loops)):
        yield [sum(idx * loop[x] for idx, loop in zip(idxs, loops)) for x in range(1, len(loops[0]))]


# ---- Host memory -----------------------------------------------------------------------------------------------------------


def view_of(x: Array) -> View:
    strides = element_strides(x)
    return View(x.dtype, x.shape, None if strides is None else tuple(strides), address(x), not x.flags.writeable)


def matmul(a: Array, b: Array, out: Any, dtype: Any, alpha: Any, beta: Any, epilogue: Epilogue, handle: Handle | None) -> Any:
    """As wsgemm.matmul."""
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    if out is None and beta != 0:
        raise needs_out(beta)
    full_a, full_b, full_shape, shape = matmul_shapes(a, b)
    result_dtype, kind_c = type_of_result(kind, a, out, dtype)
    if out is not None:
        kind_c = check_out(out, kind, a, shape)
    array = np.empty(shape, result_dtype) if out is None else out
    result = Result(array.dtype, shape, full_shape, a.ndim == 1, b.ndim == 1)
    _run(kind, kind_c, full_a, full_b, np.asarray(array).reshape(full_shape), out is None, scalars, epilogue, result, handle)
    return array[()] if out is None and not shape else array


def gemm(
    kind: Kind,
    kind_c: Kind,
    a: Array,
    b: Array,
    c: Array,
    is_fresh: bool,
    scalars: Scalars,
    epilogue: Epilogue,
    handle: Handle | None,
) -> None:
    """c = the product of two matrices with the epilogue; all but the epilogue is checked already."""
    _run(kind, kind_c, a, b, c, is_fresh, scalars, epilogue, Result(c.dtype, c.shape, c.shape, False, False), handle)


def _run(
    kind: Kind,
    kind_c: Kind,
    a: Array,
    b: Array,
    out: Array,
    is_fresh: bool,
    scalars: Scalars,
    epilogue: Epilogue,
    result: Result,
    handle: Handle | None,
) -> None:
    """out = the product with its epilogue, for arrays of two or more dimensions whose shapes fit. is_fresh: nobody else has seen
    out yet."""
    steps = steps_of(kind, epilogue)
    kept = []  # what views point to
    if epilogue.bias is not None:
        bias = as_array(epilogue.bias, "bias")
        vectors, bias_per = bias_vectors(view_of(bias), result)
        if not can_be_read(vectors) or may_share(bias, out):
            bias = np.array(bias, order="C", copy=True)
            vectors, bias_per = bias_vectors(view_of(bias), result)
        kept.append(bias)
        steps = steps._replace(bias=vectors, bias_per=bias_per)
    residual = None
    if epilogue.residual is not None:
        residual = as_array(epilogue.residual, "residual")
        check_residual(view_of(residual), result)
        residual = residual.reshape(result.full_shape)
        kept.append(residual)
    given_sums = sums = epilogue.column_sums
    if given_sums is not None:
        if type(given_sums) is not np.ndarray:
            raise TypeError(f"column_sums must be a NumPy array to write to, not {type(given_sums).__name__}")
        check_sums(view_of(given_sums), result)
        is_good = given_sums.flags.c_contiguous and given_sums.flags.aligned
        # One that shares memory with what is read is written at the very end.
        if not is_good or any(may_share(given_sums, x) for x in (*kept, out, a, b)):
            sums = np.empty(given_sums.shape, given_sums.dtype)
    if out.size == 0:
        if given_sums is not None:
            given_sums[...] = 0
        return
    m, n = out.shape[-2:]
    stack = out.shape[:-2]
    target = out
    strides_c = element_strides(out)
    if (
        strides_c is None
        or not leading(m, n, strides_c[-2], strides_c[-1])
        or (not is_fresh and may_overlap_itself(out.shape, strides_c))
    ):
        target = np.array(out, order="C", copy=True)
    view_c = view_of(target)
    if a.shape[-1]:
        avoid = None if is_fresh or target is not out else out
        a, _, _ = operand(a, stack, avoid)
        b, _, _ = operand(b, stack, avoid)
    if residual is not None:
        is_out = residual.ctypes.data == out.ctypes.data and residual.strides == out.strides
        is_row = is_by_rows(view_c)
        if is_out:
            residual = target
        elif not lies_as(view_of(residual), is_row) or may_share(residual, target):
            like = np.empty(out.shape, out.dtype) if is_row else np.empty((*stack, n, m), out.dtype).swapaxes(-1, -2)
            like[...] = residual
            residual = like
        steps = steps._replace(residual=view_c if is_out else view_of(residual))
    if sums is not None:
        steps = steps._replace(column_sums=view_of(sums.reshape((*stack, n))))
    descs = describe(kind, kind_c, view_of(a), view_of(b), view_c, scalars, steps)
    call(descs, pointer_of(handle))
    if target is not out:
        np.copyto(out, target)
    if sums is not given_sums:
        np.copyto(given_sums, sums)
