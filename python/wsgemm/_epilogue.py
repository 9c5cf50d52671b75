"""Epilogues: what matmul and gemm do to the result on its way to memory (bias, activation, scale, residual, column sums).

Checks the arguments against the result, copies what the library cannot read where it lies, and makes the calls. One call serves as
many products of a stack as lie at equal steps; unlike _layout.BatchPlan's, no products are joined to larger ones, as a bias or a
column's sum belongs to one. Host memory only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from . import _device_product, _lib
from ._arrays import (
    Array,
    Kind,
    Scalars,
    address,
    as_array,
    check_fits,
    check_out,
    element_strides,
    kind_of,
    may_share,
    needs_out,
    scalars_of,
)
from ._handle import Handle
from ._layout import leading, may_overlap_itself
from ._product import BY_VALUE, COL_MAJOR, INHERIT, NO_TRANS, ROW_MAJOR, TRANS, matmul_shapes, operand

ACTIVATIONS = {member.name[len("EPILOGUE_") :].lower(): member for member in _lib.Epilogue if member}
_PER_ROW, _PER_COLUMN = int(_lib.Bias.BIAS_PER_ROW), int(_lib.Bias.BIAS_PER_COLUMN)


class Epilogue(NamedTuple):
    """The arguments as the caller gave them."""

    activation: str | None
    bias: Any
    residual: Any
    out_scale: float
    column_sums: Any


class _Steps(NamedTuple):
    """The arguments, checked and fit for a result of the full shape (..., m, n)."""

    activation: int
    bias: Array | None  # (..., m) or (..., n), contiguous along the last axis
    bias_per: int
    residual: Array | None  # (..., m, n)
    out_scale: float
    column_sums: Array | None  # (..., n), C-ordered
    given_sums: Array | None  # to which column_sums is copied at the end, if it is not the caller's array


def refuse_device(*arrays: Any) -> None:
    """Raises WsgemmError (NOT_SUPPORTED) if any of the arrays lies on a GPU."""
    with ExitStack() as closing:
        for x in arrays:
            if x is not None and type(x) is not np.ndarray and _device_product.operands(closing, x, x, None) is not None:
                raise _lib.WsgemmError(
                    _lib.Status.NOT_SUPPORTED,
                    "WSGEMM_NOT_SUPPORTED: an epilogue (bias, activation, residual, out_scale, column_sums) of arrays on a GPU: "
                    "there are no kernels for it",
                )


def matmul(a: Any, b: Any, out: Any, alpha: Any, beta: Any, epilogue: Epilogue, handle: Handle | None) -> Any:
    """As wsgemm.matmul."""
    refuse_device(a, b, out, epilogue.bias, epilogue.residual, epilogue.column_sums)
    is_row, is_column = np.ndim(a) == 1, np.ndim(b) == 1
    a, b = as_array(a, "a"), as_array(b, "b")
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    if out is None and beta != 0:
        raise needs_out(beta)
    full_a, full_b, full_shape, shape = matmul_shapes(a, b)
    if out is not None:
        check_out(out, a, shape)
    result = np.empty(shape, a.dtype) if out is None else out
    steps = _steps(kind, a, result, full_shape, is_row, is_column, epilogue)
    run(kind, full_a, full_b, np.asarray(result).reshape(full_shape), out is None, scalars, steps, handle)
    return result[()] if out is None and not shape else result


def gemm(
    kind: Kind, a: Array, b: Array, result: Array, is_fresh: bool, scalars: Scalars, epilogue: Epilogue, handle: Handle | None
) -> None:
    """result = the product of two matrices with the epilogue; all but the epilogue is checked already."""
    run(kind, a, b, result, is_fresh, scalars, _steps(kind, a, result, result.shape, False, False, epilogue), handle)


# ---- Arguments -------------------------------------------------------------------------------------------------------------


def _steps(
    kind: Kind, a: Array, result: Array, full_shape: tuple[int, ...], is_row: bool, is_column: bool, epilogue: Epilogue
) -> _Steps:
    if kind.is_complex:
        raise TypeError(f"an epilogue takes real arrays, but a and b are {kind.name}")
    activation = 0
    if epilogue.activation is not None:
        if epilogue.activation not in ACTIVATIONS:
            raise ValueError(f"activation is {epilogue.activation!r}, but it must be one of {', '.join(map(repr, ACTIVATIONS))}")
        activation = int(ACTIVATIONS[epilogue.activation])
    out_scale = float(epilogue.out_scale)
    bias, bias_per = None, _PER_ROW
    if epilogue.bias is not None:
        bias, bias_per = _bias(as_array(epilogue.bias, "bias"), a, result, full_shape, is_row, is_column)
    residual = None
    if epilogue.residual is not None:
        residual = as_array(epilogue.residual, "residual")
        check_fits(residual, a, result.shape, "residual", "the result")
        residual = residual.reshape(full_shape)
    sums = given_sums = None
    if epilogue.column_sums is not None:
        given_sums = _sums(epilogue.column_sums, a, full_shape, is_column)
        is_good = given_sums.flags.c_contiguous and given_sums.flags.aligned
        # One that shares memory with what is read is written at the very end.
        others = [x for x in (bias, residual, result) if x is not None]
        is_good = is_good and not any(may_share(given_sums, x) for x in others)
        sums = given_sums if is_good else np.empty(given_sums.shape, given_sums.dtype)
    return _Steps(activation, bias, bias_per, residual, out_scale, sums, given_sums)


def _bias(bias: Array, a: Array, result: Array, full_shape: tuple[int, ...], is_row: bool, is_column: bool) -> tuple[Array, int]:
    if bias.dtype != a.dtype and not (bias.dtype == np.float32 and a.itemsize == 2):
        wanted = a.dtype.name + (" or float32" if a.itemsize == 2 else "")
        raise TypeError(f"bias is {bias.dtype.name}, but for a and b of {a.dtype.name} it must be {wanted}")
    *stack, m, n = full_shape
    full = bias
    if is_column:
        full = full[..., np.newaxis]
    if is_row:
        full = full[..., np.newaxis, :] if full.ndim else full[np.newaxis]
    if full.ndim == 1:
        full = full[np.newaxis]
    if full.ndim >= 2 and full.shape[-2:] == (1, n):
        vectors, bias_per, length = full[..., 0, :], _PER_COLUMN, n
    elif full.ndim >= 2 and full.shape[-2:] == (m, 1):
        vectors, bias_per, length = full[..., 0], _PER_ROW, m
    else:
        raise ValueError(
            f"bias has shape {bias.shape}, but for a result of shape {result.shape} it must be one row of it, or one column"
        )
    try:
        np.broadcast_to(vectors, (*stack, length))
    except ValueError:
        raise ValueError(f"bias has shape {bias.shape}, which does not broadcast to the result's, {result.shape}") from None
    strides = element_strides(vectors)
    if strides is None or (strides[-1] != 1 and length > 1) or may_share(vectors, result):
        vectors = np.array(vectors, order="C", copy=True)
    return np.broadcast_to(vectors, (*stack, length)), bias_per


def _sums(sums: Any, a: Array, full_shape: tuple[int, ...], is_column: bool) -> Array:
    *stack, _, n = full_shape
    dtype = np.dtype("float64" if a.dtype == np.float64 else "float32")
    shape = (*stack,) if is_column else (*stack, n)
    if type(sums) is not np.ndarray:
        raise TypeError(f"column_sums must be a NumPy array to write to, not {type(sums).__name__}")
    if sums.dtype != dtype:
        raise TypeError(f"column_sums is {sums.dtype.name}, but for a and b of {a.dtype.name} it must be {dtype.name}")
    if sums.shape != shape:
        raise ValueError(f"column_sums has shape {sums.shape}, but the result's columns have shape {shape}")
    if not sums.flags.writeable:
        raise ValueError("column_sums is read-only")
    return sums


# ---- Calls -----------------------------------------------------------------------------------------------------------------


def _lies_as(x: Array, strides: Sequence[int] | None, rows: int, cols: int, is_row: bool) -> int:
    """The leading dimension of x's matrices if they lie by rows (or else by columns), 0 if they do not."""
    if strides is None:
        return 0
    if is_row:
        ld = leading(rows, cols, strides[-2], strides[-1])
    else:  # the transpose, by rows
        ld = leading(cols, rows, strides[-1], strides[-2])
    return max(ld, 0)


def run(
    kind: Kind,
    a: Array,
    b: Array,
    out: Array,
    is_fresh: bool,
    scalars: Scalars,
    steps: _Steps,
    handle: Handle | None,
) -> None:
    """out = the product with its epilogue, for arrays of two or more dimensions whose shapes fit. is_fresh: nobody else has seen
    out yet."""
    sums = steps.column_sums
    if out.size == 0:
        if steps.given_sums is not None:
            steps.given_sums[...] = 0
        return
    m, n = out.shape[-2:]
    k = a.shape[-1]
    stack = out.shape[:-2]
    target = out
    strides_c = element_strides(out)
    if (
        strides_c is None
        or not leading(m, n, strides_c[-2], strides_c[-1])
        or (not is_fresh and may_overlap_itself(out.shape, strides_c))
    ):
        target = np.array(out, order="C", copy=True)
        strides_c = element_strides(target)
        assert strides_c is not None  # just made by NumPy
    ldc = leading(m, n, strides_c[-2], strides_c[-1])
    is_row = ldc > 0
    if k == 0:
        strides_a = strides_b = [0] * len(stack) + [1, 1]
        lda = ldb = max(m, n) * (1 if is_row else -1)
        address_a = address_b = 0
    else:
        avoid = None if is_fresh or target is not out else out
        avoid_sums = sums is not None and any(may_share(x, sums) for x in (a, b))
        if avoid_sums:
            a, b = a.copy(), b.copy()
        a, strides_a, _ = operand(a, stack, avoid)
        b, strides_b, _ = operand(b, stack, avoid)
        lda, ldb = leading(m, k, *strides_a[-2:]), leading(k, n, *strides_b[-2:])
        address_a, address_b = address(a), address(b)
    nothing = [0] * len(stack)
    bias_strides = nothing if steps.bias is None else (element_strides(steps.bias) or nothing)[:-1]
    residual, residual_strides, ld_residual = steps.residual, nothing + [0, 0], 0
    if residual is not None:
        is_out = residual.ctypes.data == out.ctypes.data and residual.strides == out.strides
        strides = element_strides(residual)
        if is_out:
            residual, strides = target, strides_c
        elif not _lies_as(residual, strides, m, n, is_row) or may_share(residual, target):
            residual = np.empty(out.shape, out.dtype) if is_row else np.empty((*stack, n, m), out.dtype).swapaxes(-1, -2)
            residual[...] = steps.residual
            strides = element_strides(residual)
        assert strides is not None
        residual_strides = [0 if size == 1 else step for size, step in zip(stack, strides)] + strides[-2:]
        ld_residual = abs(ldc) if is_out else _lies_as(residual, strides, m, n, is_row)
    sums_strides = nothing
    if sums is not None:
        full_sums = sums.reshape((*stack, n))
        sums_strides = (element_strides(full_sums) or nothing)[:-1]
    loops = _loops(stack, strides_a, strides_b, strides_c, bias_strides, residual_strides, sums_strides)
    type_bias = 0 if steps.bias is None or steps.bias.dtype == np.float32 else kind.code
    bases = (
        (address_a, kind.itemsize), (address_b, kind.itemsize), (address(target), kind.itemsize),
        (0 if steps.bias is None else steps.bias.ctypes.data, 0 if steps.bias is None else steps.bias.itemsize),
        (0 if residual is None else residual.ctypes.data, kind.itemsize),
        (0 if sums is None else sums.ctypes.data, 0 if sums is None else sums.itemsize),
    )  # fmt: skip
    batch, outside = loops
    pointer = None if handle is None else handle.pointer
    for steps_outside in _offsets(outside):
        at = [base + step * size if base else 0 for (base, size), step in zip(bases, steps_outside)]
        desc = kind.pack(
            _lib.DESC_BYTES, ROW_MAJOR if is_row else COL_MAJOR,
            NO_TRANS if (lda > 0) == is_row else TRANS, NO_TRANS if (ldb > 0) == is_row else TRANS,
            kind.code, kind.code, kind.code, kind.scalar_code, INHERIT, BY_VALUE, steps.activation,
            m, n, k, *scalars, at[0], abs(lda), at[1], abs(ldb), at[2], abs(ldc), batch[0], batch[1], batch[2], batch[3],
        ) + _lib.EPILOGUE_FORMAT.pack(
            steps.bias_per, type_bias, at[3], batch[4], at[4], ld_residual, batch[5], steps.out_scale, at[5], batch[6]
        )  # fmt: skip
        _lib.check(_lib.library.wsgemm_gemm(pointer, desc))
    if target is not out:
        np.copyto(out, target)
    if sums is not None and sums is not steps.given_sums:
        assert steps.given_sums is not None
        np.copyto(steps.given_sums, sums)


Loop = tuple[int, ...]  # count, then the step of each array


def _loops(stack: tuple[int, ...], *strides: Sequence[int]) -> tuple[Loop, list[Loop]]:
    """(the loop that one call does, the loops round it)"""
    loops: list[Loop] = []
    for dimension in reversed(range(len(stack))):
        loop = (stack[dimension], *(x[dimension] for x in strides))
        if loop[0] == 1:
            continue
        if loops and loop[1:] == tuple(loops[-1][0] * step for step in loops[-1][1:]):
            loops[-1] = (loops[-1][0] * loop[0], *loops[-1][1:])
        else:
            loops.append(loop)
    forward = [loop for loop in loops if min(loop[1:]) >= 0]
    inside = max(forward) if forward else (1,) + (0,) * len(strides)
    return inside, [loop for loop in loops if loop is not inside] + [(1,) + (0,) * len(strides)]


def _offsets(loops: list[Loop]) -> Iterator[list[int]]:
    for idxs in itertools.product(*(range(loop[0]) for loop in loops)):
        yield [sum(idx * loop[x] for idx, loop in zip(idxs, loops)) for x in range(1, len(loops[0]))]
