"""gemm, sgemm, dgemm, cgemm, zgemm, hgemm, bgemm: BLAS arguments in the order of scipy.linalg.blas.

A transposed operand is the transposed view, so everything below the arguments is _product.py's. Differences from SciPy: no
type is converted, and no operand is copied that BLAS can read where it lies.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _device_product, _epilogue
from ._arrays import LETTERS, Array, as_array, check_letter, check_out, kind_for, scalars_of
from ._epilogue import Epilogue
from ._handle import Handle, pointer_of
from ._packed import unpacked
from ._product import Options, gemm_shape, prepare, run, run_matrix

_ndarray = np.ndarray


def gemm(
    alpha: complex,
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    beta: complex = 0,
    c: Any = None,
    trans_a: int = 0,
    trans_b: int = 0,
    overwrite_c: int = 0,
    *,
    activation: str | None = None,
    bias: ArrayLike | None = None,
    residual: ArrayLike | None = None,
    out_scale: float = 1,
    column_sums: Any = None,
    handle: Handle | None = None,
) -> Any:
    """alpha * op(a) @ op(b) + beta * c, for matrices of any one type that matmul takes.

    Args:
        alpha, beta: numbers, real if the matrices are. beta != 0 needs `c`; beta = 0 never reads it.
        a, b: 2-D, of one type; op(a) is (m, k), op(b) is (k, n). In place of an array, what prepack()
            has made of it.
        c: (m, n), of the same type, or of one that matmul's `out` may have; the result is of c's type.
        trans_a, trans_b: 0: op(x) = x; 1: x transposed; 2: x transposed and conjugated.
        overwrite_c: write the result to `c`, whatever its layout, and return it. Otherwise `c` is left
            as it is.
        activation, bias, residual, out_scale, column_sums: as for matmul.
        handle: as for matmul.

    Arrays in GPU memory are taken as by matmul.

    Returns:
        `c` if it is overwritten, else a new Fortran-ordered array, as SciPy's functions do; on a GPU a
        C-ordered one.

    Raises:
        TypeError, ValueError, OverflowError, WsgemmError: as matmul does.
    """
    epilogue = None
    if activation is not None or bias is not None or residual is not None or column_sums is not None or out_scale != 1:
        epilogue = Epilogue(activation, bias, residual, out_scale, column_sums)
    return _gemm(None, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, handle, epilogue)


def _gemm(
    letter: str | None,
    alpha: complex,
    a: Any,
    b: Any,
    beta: complex,
    c: Any,
    trans_a: int,
    trans_b: int,
    overwrite_c: int,
    handle: Handle | None,
    epilogue: Epilogue | None = None,
) -> Any:
    if epilogue or type(a) is not _ndarray or type(b) is not _ndarray or (c is not None and type(c) is not _ndarray):
        a, record_a = unpacked(a, "a", trans_a)
        b, record_b = unpacked(b, "b", trans_b)
        with ExitStack() as closing:
            operands = _device_product.operands(closing, a, b, c, "c", bool(overwrite_c), epilogue, (record_a, record_b))
            if operands is not None:
                return _device_product.gemm(operands, letter, alpha, beta, trans_a, trans_b, bool(overwrite_c), epilogue, handle)
        a, b = as_array(a, "a"), as_array(b, "b")
    kind = kind_for(letter, a, b)
    scalars = scalars_of(kind, alpha, beta)
    shape = gemm_shape(a.shape, b.shape, trans_a, trans_b)
    op_a = a.T if trans_a else a
    op_b = b.T if trans_b else b
    kind_c = kind
    if c is not None:
        kind_c = check_out(c, kind, a, shape, "c", "op(a) @ op(b)", is_written=bool(overwrite_c))
        check_letter(letter, kind, kind_c)
    elif beta != 0:
        raise ValueError(f"beta = {beta} needs c, the matrix that it scales")
    pointer = None if handle is None else pointer_of(handle)
    conj_a, conj_b = trans_a == 2, trans_b == 2
    in_place = c is not None and bool(overwrite_c)
    if epilogue is None and not in_place and beta == 0 and kind_c is kind and not ((conj_a or conj_b) and kind.is_complex):
        # The C-ordered product of the transposes is the Fortran-ordered product.
        done = run_matrix(kind, kind, op_b.T, op_a.T, None, scalars, pointer)
        if done is not None:
            return done.T
    result: Array
    if c is not None and in_place:
        result = c
    elif c is not None and beta != 0:
        result = np.array(c, order="F", copy=True)
    else:
        result = np.empty(shape, a.dtype if c is None else c.dtype, order="F")
    if epilogue is not None:
        _epilogue.gemm(kind, kind_c, op_a, op_b, result, not in_place, scalars, epilogue, handle)
    elif result.size:
        options = Options(scalars, beta != 0, kind_c, conj_a, conj_b)
        run(prepare(kind, op_a, op_b, result, not in_place, options), pointer)
    return result


def _typed(letter: str, what: str = "") -> Any:
    def typed_gemm(
        alpha: complex,
        a: ArrayLike | Any,
        b: ArrayLike | Any,
        beta: complex = 0,
        c: Any = None,
        trans_a: int = 0,
        trans_b: int = 0,
        overwrite_c: int = 0,
        *,
        handle: Handle | None = None,
    ) -> Any:
        return _gemm(letter, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, handle)

    typed_gemm.__name__ = typed_gemm.__qualname__ = f"{letter}gemm"
    typed_gemm.__doc__ = f"gemm() for {what or LETTERS[letter]} matrices only;\nany other type is a TypeError."
    return typed_gemm


sgemm = _typed("s")
dgemm = _typed("d")
cgemm = _typed("c")
zgemm = _typed("z")
hgemm = _typed("h")
bgemm = _typed("b", "bfloat16 (ml_dtypes'), or uint16 matrices that hold its bits,")
