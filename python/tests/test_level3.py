"""symm, hemm, syrk, herk, syr2k, her2k, gemmtr, trmm, solve_triangular beside plain NumPy, in every memory order, and on GPUs as far
as no GPU is needed."""

import doctest
import inspect
import re
import sys

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wsgemm import _lib
from wsgemm_fakes import Cuda, Tensor, faked_cupy, faked_jax, faked_torch, gpu, ndarray  # noqa: F401
from wsgemm_reference import DTYPES, LAYOUTS, arrange, integer_array

COMPLEX = ["complex64", "complex128"]
ROUTINES = ["symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "solve_triangular"]
OPS = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}


def triangle(x, lower):
    return np.tril(x) if lower else np.triu(x)


def filled(a, lower, hermitian):
    """The symmetric or Hermitian matrix of which a triangle is given."""
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = np.diag(a).real.astype(a.dtype) if hermitian else np.diag(a)
    return strict + (strict.conj().T if hermitian else strict.T) + np.diag(diagonal)


def triangular(a, lower, unit):
    t = triangle(a, lower)
    return t - np.diag(np.diag(t)) + np.eye(len(a), dtype=a.dtype) if unit else t


def spoil(a, lower, unit=False):
    """a with NaN where it must not be read."""
    spoilt = a.copy()
    spoilt[~triangle(np.ones(a.shape, bool), lower)] = np.nan
    if unit:
        np.fill_diagonal(spoilt, np.nan)
    return spoilt


class Case:
    """One call with whole numbers, and its result by plain NumPy."""

    def __init__(self, routine, dtype, rng, m, n, k, lower, side, trans, trans_b, unit, with_c, alpha, beta):
        self.routine, self.lower = routine, lower
        self.hermitian = routine in ("hemm", "herk", "her2k")
        is_complex = np.dtype(dtype).kind == "c"
        if routine in ("syrk", "syr2k"):
            trans = min(trans, 1) if is_complex else trans
        elif self.hermitian and is_complex:
            trans = 2 * bool(trans)
        self.keywords = {"lower": lower}
        self.c = None
        getattr(self, "_" + ("symm" if routine in ("symm", "hemm") else "triangular" if routine in ("trmm", "solve_triangular") else
                             "gemmtr" if routine == "gemmtr" else "rank"))(dtype, rng, m, n, k, lower, side, trans, trans_b, unit)
        self.alpha, self.beta = alpha, 0
        if routine in ("trmm", "solve_triangular"):
            return
        if is_complex and routine != "herk":
            self.alpha = alpha + 1j
        if with_c:
            self.beta = beta + (1j if is_complex and routine not in ("herk", "her2k") else 0)
            self.c = integer_array(rng, self.product.shape, dtype)

    def _symm(self, dtype, rng, m, n, k, lower, side, *_):
        a, self.b = integer_array(rng, (n if side else m,) * 2, dtype), integer_array(rng, (m, n), dtype)
        full = filled(a, lower, self.hermitian and a.dtype.kind == "c")
        self.a = spoil(a, lower)
        self.product = self.b @ full if side else full @ self.b
        self.keywords["side"] = side

    def _rank(self, dtype, rng, m, n, k, lower, side, trans, *_):
        shape = (k, n) if trans else (n, k)
        self.a = integer_array(rng, shape, dtype)
        turn = OPS[2 if self.hermitian else 1]
        op_a = OPS[trans](self.a)
        self.b = None if self.routine in ("syrk", "herk") else integer_array(rng, shape, dtype)
        op_b = op_a if self.b is None else OPS[trans](self.b)
        self.product, self.other = op_a @ turn(op_b), op_b @ turn(op_a)
        self.keywords["trans"] = trans

    def _gemmtr(self, dtype, rng, m, n, k, lower, side, trans, trans_b, *_):
        self.a = integer_array(rng, (k, n) if trans else (n, k), dtype)
        self.b = integer_array(rng, (n, k) if trans_b else (k, n), dtype)
        self.product = OPS[trans](self.a) @ OPS[trans_b](self.b)
        self.keywords.update(trans_a=trans, trans_b=trans_b)

    def _triangular(self, dtype, rng, m, n, k, lower, side, trans, trans_b, unit):
        size = n if side else m
        # Blocks that a power of two inverts: off the diagonal only from marked rows to others.
        marked = rng.integers(0, 2, size).astype(bool)
        a = integer_array(rng, (size, size), dtype) * (marked[:, None] & ~marked[None, :])
        np.fill_diagonal(a, rng.choice([-1, 1, 2], size))
        full = OPS[trans](triangular(a, lower, unit))
        self.x = integer_array(rng, (m, n), dtype)
        self.product = self.x @ full if side else full @ self.x
        self.a, self.b = spoil(a, lower, unit), self.x.copy()
        self.keywords.update(side=side, trans=trans, unit_diagonal=unit)

    @property
    def expected(self):
        if self.routine == "trmm":
            return self.alpha * self.product
        if self.routine == "solve_triangular":
            return self.alpha * self.x
        result = self.alpha * self.product
        if self.routine in ("syr2k", "her2k"):
            alpha = np.conj(self.alpha) if self.hermitian else self.alpha
            result = result + alpha * self.other
        if self.c is not None:
            result = result + self.beta * self.c
        if self.routine in ("symm", "hemm"):
            return result
        nothing_happens = self.beta == 1 and 0 in self.a.shape
        if self._real_diagonal and not nothing_happens:
            result = self._with_real_diagonal(result)
        wanted = triangle(np.ones(result.shape, bool), self.lower)
        return np.where(wanted, result, 0 if self.c is None else self.c)

    @property
    def _real_diagonal(self):
        return self.routine in ("herk", "her2k")

    @staticmethod
    def _with_real_diagonal(x):
        x = x.copy()
        np.fill_diagonal(x, np.diag(x).real)
        return x

    def call(self, a, b, c, overwrite):
        function = getattr(wsgemm, self.routine)
        if self.routine == "solve_triangular":
            return function(a, b, alpha=self.alpha, overwrite_b=overwrite, **self.keywords)
        if self.routine == "trmm":
            return function(self.alpha, a, b, overwrite_b=overwrite, **self.keywords)
        operands = (a,) if b is None else (a, b)
        return function(self.alpha, *operands, self.beta, c, overwrite_c=overwrite, **self.keywords)


CASES = {
    "routine": st.sampled_from(ROUTINES),
    "dtype": st.sampled_from(DTYPES),
    "m": st.integers(0, 17),
    "n": st.integers(0, 17),
    "k": st.integers(0, 17),
    "lower": st.booleans(),
    "side": st.sampled_from([0, 1]),
    "trans": st.sampled_from([0, 1, 2]),
    "trans_b": st.sampled_from([0, 1, 2]),
    "unit": st.booleans(),
    "with_c": st.booleans(),
    "alpha": st.sampled_from([1, -1, 2]),
    "beta": st.sampled_from([0, 1, -2]),
}


def right_side(case):
    return case.product if case.routine == "solve_triangular" else case.b


@settings(max_examples=1500)
@given(layouts=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3), overwrite=st.booleans(), seed=st.integers(0, 2**32 - 1), **CASES)
def test_every_routine(layouts, overwrite, seed, **arguments):
    case = Case(rng=np.random.default_rng(seed), **arguments)
    expected, b = case.expected, right_side(case)
    a = arrange(case.a, layouts[0])
    b = None if b is None else arrange(b.copy(), layouts[1])
    c = None if case.c is None else arrange(case.c.copy(), layouts[2])
    before = None if b is None else b.copy()
    result = case.call(a, b, c, overwrite)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.dtype(arguments["dtype"])
    if case.routine in ("trmm", "solve_triangular"):
        assert (result is b) == overwrite
    elif c is not None:
        assert (result is c) == overwrite
    if result is not b and b is not None:
        np.testing.assert_array_equal(b, before)
    if c is not None and result is not c:
        np.testing.assert_array_equal(c, case.c)


def test_a_new_result_lies_as_scipys():
    a = np.asfortranarray(np.eye(3) + 1)
    for result in (wsgemm.symm(1, a, a), wsgemm.syrk(1, np.ones((3, 2))), wsgemm.gemmtr(1, a, a), wsgemm.trmm(1, a, a)):
        assert result.flags.f_contiguous
    assert wsgemm.solve_triangular(a, np.ones((3, 2))).flags.c_contiguous  # b's order spares a copy


def test_solve_triangular_of_a_vector():
    a, b = np.array([[2.0, 0], [1, 4]]), np.array([2.0, 9])
    np.testing.assert_array_equal(wsgemm.solve_triangular(a, b, lower=True), [1, 2])
    np.testing.assert_array_equal(wsgemm.solve_triangular(a, b, lower=True, trans="T"), np.linalg.solve(a.T, b))
    wide = np.zeros((2, 3))
    wide[:, 1] = b
    column = wide[:, 1]
    assert wsgemm.solve_triangular(a, column, lower=True, overwrite_b=True) is column
    np.testing.assert_array_equal(wide, [[0, 1, 0], [0, 2, 0]])


def test_solve_triangular_beside_numpy():
    rng = np.random.default_rng(7)
    for dtype in DTYPES:
        a = rng.standard_normal((200, 200)).astype(dtype) / 200 + 2 * np.eye(200, dtype=dtype)
        b = rng.standard_normal((200, 30)).astype(dtype)
        x = wsgemm.solve_triangular(a, b, trans=2, lower=True)
        expected = np.linalg.solve(np.tril(a).conj().T.astype(np.complex128), b)
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)


def test_a_singular_triangle_gives_inf_and_nan():
    x = wsgemm.solve_triangular(np.array([[1.0, 1], [0, 0]]), np.ones(2))
    assert not np.isfinite(x).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_overlap_the_result(dtype):
    rng = np.random.default_rng(8)
    x = integer_array(rng, (6, 6), dtype)
    np.fill_diagonal(x, 1)
    a = x.copy()
    assert wsgemm.symm(1, x, x, 1, x, overwrite_c=1) is x
    np.testing.assert_array_equal(x, filled(a, False, False) @ a + a)
    x[...] = a
    wsgemm.trmm(1, x, x, overwrite_b=1)
    np.testing.assert_array_equal(x, np.triu(a) @ a)
    x[...] = a
    wsgemm.syrk(1, x, 0, x, lower=1, overwrite_c=1)
    np.testing.assert_array_equal(x, np.tril(a @ a.T) + np.triu(a, 1))


def test_handles_and_settings():
    a, b = np.ones((300, 300)), np.ones((300, 300))
    np.testing.assert_array_equal(wsgemm.syr2k(1, a, b, handle=wsgemm.Handle(threads=2)), np.triu(np.full((300, 300), 600.0)))
    with pytest.raises(TypeError, match="handle must be a wsgemm.Handle"):
        wsgemm.syrk(1, a, handle=3)


EYE = np.eye(3, dtype="float32")
TALL = np.ones((3, 2), "float32")
READ_ONLY = np.ones((3, 3), "float32")
READ_ONLY.flags.writeable = False
BAD = [
    (wsgemm.symm, (1, EYE, TALL.astype("float64")), {}, TypeError, ["a is float32", "b is float64"]),
    (wsgemm.symm, (1, TALL, TALL), {}, ValueError, ["a has shape (3, 2)", "on the left of b", "(3, 3)"]),
    (wsgemm.symm, (1, EYE, TALL), {"side": 1}, ValueError, ["a has shape (3, 3)", "on the right of b", "(2, 2)"]),
    (wsgemm.symm, (1, EYE, TALL), {"side": 2}, ValueError, ["side is 2"]),
    (wsgemm.symm, (1, EYE, np.ones(3, "float32")), {}, ValueError, ["b has shape (3,)", "symm takes matrices"]),
    (wsgemm.symm, (1, EYE, TALL, 1), {}, ValueError, ["beta = 1 needs c"]),
    (wsgemm.symm, (1j, EYE, TALL), {}, TypeError, ["alpha is complex", "float32"]),
    (wsgemm.symm, (1, EYE, EYE, 1, READ_ONLY), {"overwrite_c": 1}, ValueError, ["c is read-only"]),
    (wsgemm.symm, (1, EYE, TALL, 1, EYE), {}, ValueError, ["c has shape (3, 3)", "(3, 2)"]),
    (wsgemm.symm, (1, EYE, TALL, 1, TALL.astype("float64")), {}, TypeError, ["c is float64", "float32"]),
    (wsgemm.symm, (1, EYE.astype("float16"), TALL.astype("float16")), {}, TypeError, ["a is float16", "symm takes float32"]),
    (wsgemm.symm, (1, EYE.astype(int), TALL.astype(int)), {}, TypeError, ["a is int64"]),
    (wsgemm.syrk, (1, TALL.astype("complex64")), {"trans": 2}, ValueError, ["trans is 2", "syrk takes 0 or 1", "herk"]),
    (wsgemm.herk, (1, TALL.astype("complex64")), {"trans": 1}, ValueError, ["trans is 1", "herk takes 0 or 2", "syrk"]),
    (wsgemm.herk, (1j, TALL.astype("complex64")), {}, TypeError, ["alpha is complex", "herk"]),
    (wsgemm.her2k, (1, *[TALL.astype("complex64")] * 2, 1j, np.eye(3, dtype="complex64")), {}, TypeError, ["beta is complex"]),
    (wsgemm.syrk, (1, TALL), {"trans": "X"}, ValueError, ["trans is 'X'"]),
    (wsgemm.syr2k, (1, TALL, EYE), {}, ValueError, ["a has shape (3, 2)", "b has shape (3, 3)", "one shape"]),
    (wsgemm.gemmtr, (1, TALL, TALL.T[:, :2]), {}, ValueError, ["op(a) @ op(b) has shape (3, 2)", "square"]),
    (wsgemm.gemmtr, (1, TALL, TALL), {}, ValueError, ["op(a) has shape (3, 2)", "op(b) has shape (3, 2)"]),
    (wsgemm.trmm, (1, EYE, READ_ONLY), {"overwrite_b": 1}, ValueError, ["b is read-only"]),
    (wsgemm.trmm, (1, EYE, [[1.0] * 3] * 3), {"overwrite_b": 1}, TypeError, ["b must be a NumPy array", "list"]),
    (wsgemm.solve_triangular, (EYE, TALL), {"trans": 3}, ValueError, ["trans is 3"]),
    (wsgemm.solve_triangular, (EYE, np.ones(2, "float32")), {}, ValueError, ["a has shape (3, 3)", "(2, 2)"]),
    (wsgemm.solve_triangular, (EYE, np.float32(1)), {}, ValueError, ["b has shape ()", "solve_triangular takes matrices"]),
]


@pytest.mark.parametrize("function, arguments, keywords, exception, words", BAD)
def test_bad_arguments(function, arguments, keywords, exception, words):
    with pytest.raises(exception) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is exception
    for word in words:
        assert word in str(caught.value)


def test_a_call_is_explained_and_not_done():
    a, b, c = np.ones((300, 40)), np.full((300, 300), 2.0), np.full((300, 300), 7.0)
    how = wsgemm.explain_level3("syrk", 1, a, 1, c, overwrite_c=1)
    assert how["backend"] == "cpu" and how["calls"] == "1" and "kernel" in how and (c == 7).all()
    assert wsgemm.explain_level3("solve_triangular", np.eye(300), b, overwrite_b=True)["calls"] == "1" and (b == 2).all()
    b[...] = 2
    assert wsgemm.explain_level3("trmm", 1, np.eye(300), b[::-1, ::2], overwrite_b=1)["calls"] == "1" and (b == 2).all()
    stack = np.ones((2, 3, 8, 8))
    assert wsgemm.explain_level3("symm", 1, stack, np.ones((8, 8)))["calls"] == "1"
    assert wsgemm.explain_level3("syrk", 1, np.ones((0, 4))) == {"calls": "0"}
    np.testing.assert_array_equal(wsgemm.syrk(1, a), np.triu(np.full((300, 300), 40.0)))  # and after it all is as it was
    for function, arguments, keywords, exception, words in BAD:
        with pytest.raises(exception, match=re.escape(words[0])):
            wsgemm.explain_level3(function.__name__, *arguments, **keywords)
    with pytest.raises(ValueError, match="routine is 'gemm', but it must be one of symm"):
        wsgemm.explain_level3("gemm", 1, a, a)
    one = wsgemm.explain_level3("syr2k", 1, a, a, handle=wsgemm.Handle(threads=1))
    assert one["threads"] == "1"


# ---- Device arrays, faked ------------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(layouts=st.tuples(*[st.sampled_from(["c", "f", "window"])] * 3), overwrite=st.booleans(), seed=st.integers(0, 2**32 - 1), **CASES)
def test_tensors(gpu, torch, layouts, overwrite, seed, **arguments):  # noqa: F811
    case = Case(rng=np.random.default_rng(seed), **arguments)
    expected, b = case.expected, right_side(case)
    hosts = [None if x is None else arrange(x.copy(), layout) for x, layout in zip((case.a, b, case.c), layouts)]
    a, b, c = (None if x is None else Tensor(x) for x in hosts)
    try:
        result = case.call(a, b, c, overwrite)
    except ValueError as error:  # a copy in column-major order is nothing that torch makes
        assert "cannot read where it lies" in str(error) and "f" in layouts
        return
    np.testing.assert_array_equal(result.array, expected)
    written = b if case.routine in ("trmm", "solve_triangular") else c
    assert (result is written) == (overwrite and written is not None)
    if result is not written:
        assert result.array.flags.c_contiguous
    if result.array.size:
        assert gpu.log[-1] == ("level3", 5) and result.n_written == 1


def test_device_arrays_are_read_where_they_lie(gpu, torch):  # noqa: F811
    rng = np.random.default_rng(9)
    a, b = integer_array(rng, (4, 4), "float32"), integer_array(rng, (4, 6), "float32")
    wide = np.zeros((4, 9), "float32")
    out = wide[:, 1:7]
    wsgemm.symm(1, Tensor(a.T), Tensor(b), 0, Tensor(out), overwrite_c=1)
    (desc,) = gpu.level3
    assert (desc.layout, desc.uplo, desc.lda, desc.ldc) == (_lib.Layout.ROW_MAJOR, _lib.Uplo.LOWER, 4, 9)
    assert (desc.a, desc.b, desc.c) == (a.ctypes.data, b.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, filled(a.T, False, False) @ b)


def test_other_libraries(gpu, cupy, jax):  # noqa: F811
    from wsgemm_fakes import Array

    rng = np.random.default_rng(10)
    a = integer_array(rng, (4, 3), "complex128")
    expected = np.triu(a @ a.conj().T)
    result = wsgemm.herk(1, ndarray(a))
    np.testing.assert_array_equal(result.array, expected)
    result = wsgemm.herk(1, Array(a))
    np.testing.assert_array_equal(result.array, expected)
    with pytest.raises(ValueError, match="jax|written"):
        wsgemm.herk(1, Array(a), 0, Array(np.zeros((4, 4), "complex128")), overwrite_c=1)
    with pytest.raises(TypeError, match="cannot ask for"):
        wsgemm.herk(1, Cuda(a))
    out = np.zeros((4, 4), "complex128")
    wsgemm.herk(1, Cuda(a), 0, Cuda(out), overwrite_c=1)
    np.testing.assert_array_equal(out, expected)


def test_conjugated_views(gpu, torch):  # noqa: F811
    rng = np.random.default_rng(11)
    a, b = integer_array(rng, (3, 3), "complex64"), integer_array(rng, (3, 3), "complex64")
    view = Tensor(a)
    view.conjugated = True
    np.testing.assert_array_equal(wsgemm.gemmtr(1, view, Tensor(b)).array, np.triu(a.conj() @ b))
    np.testing.assert_array_equal(wsgemm.gemmtr(1, Tensor(b), view, trans_b=2).array, np.triu(b @ a.T))
    np.testing.assert_array_equal(wsgemm.trmm(1, view, Tensor(b), trans=1).array, np.triu(a).conj().T @ b)
    with pytest.raises(TypeError, match="conjugated view"):
        wsgemm.syrk(1, view)


def test_mixed_places_are_refused(gpu, torch):  # noqa: F811
    a = np.eye(3)
    with pytest.raises(TypeError, match="a lies in host memory .* b lies on a GPU"):
        wsgemm.symm(1, a, Tensor(a))
    assert not gpu.level3


def test_examples_and_signatures():
    failures, n_tests = doctest.testmod(sys.modules["wsgemm._level3"])
    assert failures == 0 and n_tests > 20
    for routine in ROUTINES:
        function = getattr(wsgemm, routine)
        assert function.__name__ == routine and function.__doc__
        names = list(inspect.signature(function).parameters)
        assert names[-1] == "handle" and "a" in names and "routine" not in names
