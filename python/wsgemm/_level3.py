"""symm, hemm, syrk, herk, syr2k, her2k, gemmtr, trmm, solve_triangular: Level 3 BLAS, with SciPy's
arguments.

The arguments of each routine, their checks and their meaning. Where the arrays lie, what must be
copied and the descriptor of the call are _level3_plan.py's.
"""

from __future__ import annotations

import cmath
import inspect
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import _device_product, _lib
from ._arrays import Kind, as_array, check_out, check_shape, kind_of, scalars_of
from ._device import check_shape_fits
from ._handle import Handle
from ._level3_plan import (
    TRAITS, Call, Host, OnDevice, R, Traits, choice, device_operands, explaining, is_on_the_right, run,
)  # fmt: skip
from ._product import common_stack, gemm_shape

_OPS = {
    **dict.fromkeys((0, "N"), _lib.Op.NO_TRANS),
    **dict.fromkeys((1, "T"), _lib.Op.TRANS),
    **dict.fromkeys((2, "C"), _lib.Op.CONJ_TRANS),
}


def _op(trans: Any, name: str) -> _lib.Op:
    op: _lib.Op = choice(_OPS, trans, name, "0 (no), 1 (transpose) or 2 (conjugate transpose)")
    return op


def _is_transposed(op: _lib.Op) -> bool:
    return op != _lib.Op.NO_TRANS


if TYPE_CHECKING:  # Python 3.10's
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")


def _routine(routine: _lib.Routine, body: Callable[Concatenate[_lib.Routine, P], Any], doc: str) -> Callable[P, Any]:
    """The function of one routine of a family: named after it, with the body's signature but for the routine."""

    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return body(routine, *args, **kwargs)

    signature = inspect.signature(body)
    call.__name__ = call.__qualname__ = routine.name.lower()
    call.__doc__ = doc
    call.__annotations__ = {name: kind for name, kind in body.__annotations__.items() if name != "routine"}
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return call


# ---- Symmetric and Hermitian matrices --------------------------------------------------------------------------------------


def _structured(
    routine: _lib.Routine,
    alpha: complex,
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    beta: complex = 0,
    c: Any = None,
    side: int | str = 0,
    lower: int = 0,
    overwrite_c: int = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    return _run(_Asked(routine, alpha, beta, side=side, lower=lower), a, b, c, overwrite_c, handle)


symm = _routine(
    R.SYMM,
    _structured,
    """alpha * a @ b + beta * c, or alpha * b @ a + beta * c, for a symmetric matrix a.

Args:
    alpha, beta: numbers, real if the matrices are. beta != 0 needs `c`; beta = 0 does not read
        it.
    a: square, of which only the upper triangle (lower=1: the lower one) is read.
    b: (m, n), of a's type: float32, float64, complex64 or complex128.
    c: (m, n), of the same type. Each of the three may be a stack of matrices (below).
    side: 0 or "left": a @ b; 1 or "right": b @ a.
    overwrite_c: write the result to `c`, and return it. Otherwise `c` is left as it is.
    handle: threads, policy and kernel of this call; None: the process's default handle.

Returns:
    `c` if it is overwritten, else a new array: Fortran-ordered as SciPy's functions give it, or
    C-ordered where that spares a copy of an operand, or for a stack.

Raises:
    TypeError: types are mixed or not among these, or a scalar is complex where it must be real.
    ValueError: shapes do not fit, c is read-only, or beta without c.
    OverflowError: alpha or beta is beyond the arrays' type.
    WsgemmError: the library could not do it.

Of stacks, arrays of three dimensions or more, the leading dimensions are broadcast as by matmul;
`c`, and what is overwritten, has all of them. A stack that lies at equal steps is one call.

Arrays in GPU memory are taken as by matmul; there a new result is C-ordered, and operands that
do not lie as it does are copied by torch, cupy or jax, or else refused.

>>> import numpy as np
>>> import wsgemm
>>> a = np.array([[2.0, 1.0], [np.nan, 3.0]])  # the lower triangle is not read
>>> wsgemm.symm(1, a, np.eye(2))
array([[2., 1.],
       [1., 3.]])
""",
)

hemm = _routine(
    R.HEMM,
    _structured,
    """As symm, for a Hermitian matrix a: the imaginary parts of its diagonal count as 0.

>>> import numpy as np
>>> import wsgemm
>>> a = np.array([[2, 1j], [0, 3]])
>>> wsgemm.hemm(1, a, np.eye(2, dtype=complex))
array([[2.+0.j, 0.+1.j],
       [0.-1.j, 3.+0.j]])
""",
)

# ---- Products of which a triangle is computed ------------------------------------------------------------------------------


def _rank_k(
    routine: _lib.Routine,
    alpha: complex,
    a: ArrayLike | Any,
    beta: complex = 0,
    c: Any = None,
    trans: int | str = 0,
    lower: int = 0,
    overwrite_c: int = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    return _run(_Asked(routine, alpha, beta, lower=lower, trans_a=trans), a, None, c, overwrite_c, handle)


def _rank_2k(
    routine: _lib.Routine,
    alpha: complex,
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    beta: complex = 0,
    c: Any = None,
    trans: int | str = 0,
    lower: int = 0,
    overwrite_c: int = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    return _run(_Asked(routine, alpha, beta, lower=lower, trans_a=trans), a, b, c, overwrite_c, handle)


syrk = _routine(
    R.SYRK,
    _rank_k,
    """The upper triangle (lower=1: the lower one) of alpha * op(a) @ op(a).T + beta * c.

Args:
    alpha, beta, overwrite_c, handle: as for symm.
    a: (n, k), or with trans (k, n).
    c: (n, n). Its other triangle is neither read nor changed.
    trans: 0: op(a) = a; 1: a.T; for real matrices also 2.

Returns:
    `c` if it is overwritten; else a new array, whose other triangle is that of `c`, or zero.
    Errors are symm's.

>>> import numpy as np
>>> import wsgemm
>>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
>>> wsgemm.syrk(1, a)
array([[ 5., 11.],
       [ 0., 25.]])
>>> wsgemm.syrk(1, a, trans=1, lower=1)
array([[10.,  0.],
       [14., 20.]])
""",
)

herk = _routine(
    R.HERK,
    _rank_k,
    """A triangle of alpha * op(a) @ op(a).conj().T + beta * c: as syrk, but alpha and beta are
real, trans is 0 or 2 (op(a) = a.conj().T), and the diagonal of the result is real.

>>> import numpy as np
>>> import wsgemm
>>> wsgemm.herk(1, np.array([[1, 1j], [2, 1]]))
array([[2.+0.j, 2.+1.j],
       [0.+0.j, 5.+0.j]])
""",
)

syr2k = _routine(
    R.SYR2K,
    _rank_2k,
    """A triangle of alpha * op(a) @ op(b).T + alpha * op(b) @ op(a).T + beta * c: else as syrk, b
being of a's shape.

>>> import numpy as np
>>> import wsgemm
>>> wsgemm.syr2k(1, np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
array([[ 6., 10.],
       [ 0., 16.]])
""",
)

her2k = _routine(
    R.HER2K,
    _rank_2k,
    """A triangle of alpha * op(a) @ op(b).conj().T + its conjugate transpose + beta * c: else as
herk, but alpha may be complex.""",
)

def gemmtr(
    alpha: complex,
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    beta: complex = 0,
    c: Any = None,
    trans_a: int | str = 0,
    trans_b: int | str = 0,
    lower: int = 0,
    overwrite_c: int = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    """The upper triangle (lower=1: the lower one) of gemm's result, which must be square: half the
    work where only a triangle is wanted, or both are known to be equal.

    Arguments are gemm's, the result is as syrk's, errors are symm's.

    >>> import numpy as np
    >>> import wsgemm
    >>> wsgemm.gemmtr(1, np.ones((2, 3)), np.ones((3, 2)), lower=1)
    array([[3., 0.],
           [3., 3.]])
    """
    return _run(_Asked(R.GEMMTR, alpha, beta, lower=lower, trans_a=trans_a, trans_b=trans_b), a, b, c, overwrite_c, handle)


# ---- Triangular matrices ---------------------------------------------------------------------------------------------------


def trmm(
    alpha: complex,
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    side: int | str = 0,
    lower: int = 0,
    trans: int | str = 0,
    unit_diagonal: int = 0,
    overwrite_b: int = 0,
    *,
    handle: Handle | None = None,
) -> Any:
    """alpha * op(a) @ b, or alpha * b @ op(a), for a triangular matrix a.

    Args:
        alpha, side, handle: as for symm.
        a: square, of which only the upper triangle (lower=1: the lower one) is read.
        b: (m, n), of a's type.
        trans: 0: op(a) = a; 1: a.T; 2: a.conj().T.
        unit_diagonal: a's diagonal is not read, and counts as ones.
        overwrite_b: write the result to `b`, and return it.

    Returns:
        `b` if it is overwritten, else a new array in b's memory order. Errors are symm's.

    >>> import numpy as np
    >>> import wsgemm
    >>> wsgemm.trmm(1, np.array([[1.0, 2.0], [0.0, 3.0]]), np.ones((2, 2)), unit_diagonal=1)
    array([[3., 3.],
           [1., 1.]])
    """
    asked = _Asked(R.TRMM, alpha, 0, side, lower, trans, unit_diagonal=unit_diagonal)
    return _run(asked, a, b, None, overwrite_b, handle)


def solve_triangular(
    a: ArrayLike | Any,
    b: ArrayLike | Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    *,
    alpha: complex = 1,
    side: int | str = 0,
    handle: Handle | None = None,
) -> Any:
    """The x that solves op(a) @ x = alpha * b (side="right": x @ op(a) = alpha * b), for a
    triangular matrix a: BLAS's trsm, with the arguments of scipy.linalg.solve_triangular.

    Args:
        a: square, of which only the upper triangle (lower=True: the lower one) is read.
        b: (m, n), or for the left side (m,), of a's type. Stacks are taken as by symm; an array of
            one dimension is one right side for all of them.
        trans: 0 or "N": op(a) = a; 1 or "T": a.T; 2 or "C": a.conj().T.
        unit_diagonal: a's diagonal is not read, and counts as ones.
        overwrite_b: write x to `b`, and return it.
        alpha, side, handle: as for symm.

    Returns:
        `b` if it is overwritten, else a new array of its shape and memory order. A zero on the
        diagonal gives inf and nan, as dividing by it does: no error, unlike SciPy. Errors are
        symm's.

    >>> import numpy as np
    >>> import wsgemm
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> wsgemm.solve_triangular(a, np.array([2.0, 9.0]), lower=True)
    array([1., 2.])
    """
    asked = _Asked(R.TRSM, alpha, 0, side, int(lower), trans, unit_diagonal=unit_diagonal)
    return _run(asked, a, b, None, overwrite_b, handle)


# ---- Explaining ------------------------------------------------------------------------------------------------------------

_FUNCTIONS = {x.__name__: x for x in (symm, hemm, syrk, herk, syr2k, her2k, gemmtr, trmm, solve_triangular)}


def explain_level3(routine: str, *args: Any, **kwargs: Any) -> dict[str, str]:
    """How symm, hemm, syrk, herk, syr2k, her2k, gemmtr, trmm or solve_triangular would do a call,
    without doing it: what explain says of matmul's.

    Args:
        routine: the function's name.
        args, kwargs: its arguments; nothing is written to any of them. What the call would copy
            first is copied.

    Returns:
        What the library says of it, by name ("backend", "kernel", ...), and under "calls" the
        number of library calls that a stack takes; {"calls": "0"} where there is nothing to do.

    Raises:
        ValueError: no such routine. All else as the routine does.

    >>> import numpy as np
    >>> import wsgemm
    >>> how = wsgemm.explain_level3("syrk", 1, np.ones((400, 300)))
    >>> how["backend"], how["calls"]
    ('cpu', '1')
    """
    if routine not in _FUNCTIONS:
        raise ValueError(f"routine is {routine!r}, but it must be one of {', '.join(_FUNCTIONS)}")
    answer: dict[str, str] = {}
    token = explaining.set(answer)
    try:
        _FUNCTIONS[routine](*args, **kwargs)
    finally:
        explaining.reset(token)
    return answer


# ---- Checks ----------------------------------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """The arguments that are no arrays."""

    routine: _lib.Routine
    alpha: Any
    beta: Any
    side: Any = 0
    lower: Any = 0
    trans_a: Any = 0
    trans_b: Any = 0
    unit_diagonal: Any = 0

    @property
    def traits(self) -> Traits:
        return TRAITS[self.routine]

    @property
    def name(self) -> str:
        return "solve_triangular" if self.routine == R.TRSM else self.routine.name.lower()


def _real(x: Any, name: str, routine: str) -> None:
    if isinstance(x, (complex, np.complexfloating)) and (x.imag or cmath.isnan(x)):
        raise TypeError(f"{name} is complex, but {routine} takes a real number there")


def _checked(asked: _Asked, kind: Kind, shape_a: tuple[int, ...], shape_b: tuple[int, ...] | None) -> Call:
    """The call for operands of these shapes, of two dimensions each or more."""
    routine, traits, name = asked.routine, asked.traits, asked.name
    if kind.is_half:
        raise TypeError(f"a is {kind.name}, but {name} takes float32, float64, complex64 or complex128")
    given = {"a": shape_a} if shape_b is None else {"a": shape_a, "b": shape_b}
    if any(len(shape) < 2 for shape in given.values()):
        shapes = " and ".join(f"{x} has shape {shape}" for x, shape in given.items())
        raise ValueError(f"{shapes}, but {name} takes matrices, or stacks of them")
    is_right = is_on_the_right(asked.side)
    trans_name = "trans_a" if routine == R.GEMMTR else "trans"
    op_a, op_b = _op(asked.trans_a, trans_name), _op(asked.trans_b, "trans_b")
    wrong = _lib.Op.TRANS if traits.of_reals else _lib.Op.CONJ_TRANS
    if traits.is_rank_update and kind.is_complex and op_a == wrong:
        right, other = (2, "syrk") if traits.of_reals else (1, "herk")
        raise ValueError(f"trans is {asked.trans_a!r}, but for complex matrices {name} takes 0 or {right}; see {other}")
    for scalar in traits.real:
        _real(getattr(asked, scalar), scalar, name)
    scalars = scalars_of(kind, asked.alpha, asked.beta)
    if not kind.is_complex:
        routine = traits.of_reals or routine
        op_a, op_b = (_lib.Op.TRANS if _is_transposed(op) else op for op in (op_a, op_b))
    stack = common_stack(shape_a, shape_a if shape_b is None else shape_b)
    sizes = (_triangle_sizes if traits.is_triangle else _sizes_beside)(asked, shape_a, shape_b, op_a, op_b)
    return Call(routine, kind, scalars, *sizes, is_right, bool(asked.lower), op_a, op_b, bool(asked.unit_diagonal), stack)


_Sizes = tuple[int, int, int]  # m, n, k


def _sizes_beside(
    asked: _Asked, shape_a: tuple[int, ...], shape_b: tuple[int, ...] | None, op_a: _lib.Op, op_b: _lib.Op
) -> _Sizes:
    """Of a square a beside b."""
    assert shape_b is not None
    is_right = is_on_the_right(asked.side)
    m, n = shape_b[-2:]
    wanted = (n, n) if is_right else (m, m)
    if shape_a[-2:] != wanted:
        raise ValueError(
            f"a has shape {shape_a}, but on the {'right' if is_right else 'left'} of b, which has shape {shape_b}, it must "
            f"have shape {wanted}"
        )
    return m, n, 0


def _triangle_sizes(
    asked: _Asked, shape_a: tuple[int, ...], shape_b: tuple[int, ...] | None, op_a: _lib.Op, op_b: _lib.Op
) -> _Sizes:
    """Of products that give a square matrix."""
    a = shape_a[-2:]
    b = a if shape_b is None else shape_b[-2:]
    n, k = a[::-1] if _is_transposed(op_a) else a
    if not asked.traits.is_rank_update:
        shape = gemm_shape(a, b, int(_is_transposed(op_a)), int(_is_transposed(op_b)))
        if shape[0] != shape[1]:
            raise ValueError(f"op(a) @ op(b) has shape {shape}, but {asked.name} takes those that give a square matrix")
    elif a != b:
        raise ValueError(f"a has shape {shape_a} and b has shape {shape_b}, but {asked.name} takes two of one shape")
    return 0, n, k


def _needs_c(asked: _Asked, c: Any) -> None:
    if c is None and asked.beta != 0:
        raise ValueError(f"beta = {asked.beta} needs c, the matrix that it scales")


def _run(asked: _Asked, a: Any, b: Any, c: Any, overwrite: Any, handle: Handle | None) -> Any:
    in_place = asked.traits.is_in_place
    _needs_c(asked, c)
    with ExitStack() as closing:
        given = {name: x for name, x in (("a", a), ("b", b), ("c", c)) if name == "a" or x is not None}
        written = ("b" if in_place else "c") if overwrite else None
        ops = device_operands(closing, given, written)
        if ops is not None:
            return _run_on_device(asked, ops, b is not None, bool(overwrite), handle)
    a = as_array(a, "a")
    kind = kind_of(a, a)
    if overwrite and in_place and (type(b) is not np.ndarray or not b.flags.writeable):
        check_out(b, kind_of(a, b) if isinstance(b, np.ndarray) else kind, a, np.shape(b), "b")
    b = None if b is None else as_array(b, "b")
    if b is not None:
        kind = kind_of(a, b)
    is_vector = b is not None and b.ndim == 1 and asked.routine == R.TRSM
    full_b = b[:, np.newaxis] if b is not None and is_vector else b
    call = _checked(asked, kind, a.shape, None if full_b is None else full_b.shape)
    if c is not None:
        check_out(c, kind, a, call.shape, "c", "the result", is_written=bool(overwrite))
    if in_place and overwrite:
        check_shape(b, _visible(call, is_vector), "b", "the result")
    result = run(Host(handle), call, a, full_b, c, bool(overwrite))
    if in_place and overwrite:
        return b
    return result[..., 0] if is_vector else result


def _visible(call: Call, is_vector: bool) -> tuple[int, ...]:
    # The shape of the result as it is returned.
    return call.shape[:-1] if is_vector else call.shape


def _run_on_device(asked: _Asked, ops: _device_product.Operands, has_b: bool, overwrite: bool, handle: Handle | None) -> Any:
    a = ops.view(ops.a)
    b = ops.view(ops.b) if has_b else None
    kind = kind_of(a, a if b is None else b)
    is_vector = b is not None and len(b.shape) == 1 and asked.routine == R.TRSM
    full_b = b.insert(1) if b is not None and is_vector else b
    call = _checked(asked, kind, a.shape, None if full_b is None else full_b.shape)
    c = None if ops.out is None else ops.view(ops.out)
    if ops.out is not None and c is not None:
        _device_product.check_device_out(ops.out, c, kind, a, call.shape, "the result", overwrite)
    elif asked.traits.is_in_place and overwrite and b is not None:
        _device_product.check_device_out(ops.b, b, kind, a, _visible(call, is_vector), "the result")
    check_shape_fits("the result", call.shape, a.dtype)
    memory = OnDevice(ops, handle, is_vector)
    operand_b = None if full_b is None else (ops.b, full_b)
    operand_c = None if ops.out is None or c is None else (ops.out, c)
    result, _ = run(memory, call, (ops.a, a), operand_b, operand_c, overwrite)
    return result.given
