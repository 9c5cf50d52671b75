"""gemm and its four typed forms: BLAS arguments, and nothing converted."""

import numpy as np
import pytest
import wsgemm
from hypothesis import given
from hypothesis import strategies as st
from wsgemm_reference import DTYPES, LAYOUTS, arrange, assert_product, integer_array, random_array

TYPED = {"float32": wsgemm.sgemm, "float64": wsgemm.dgemm, "complex64": wsgemm.cgemm, "complex128": wsgemm.zgemm}
OPS = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}


def stored(rng, rows, cols, trans, dtype):
    """A random matrix whose op() is rows x cols."""
    return random_array(rng, (cols, rows) if trans else (rows, cols), dtype)


@given(
    dtype=st.sampled_from(DTYPES),
    m=st.integers(0, 20),
    n=st.integers(0, 20),
    k=st.integers(0, 20),
    trans=st.tuples(st.sampled_from(list(OPS)), st.sampled_from(list(OPS))),
    layouts=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3),
    beta=st.sampled_from([0, 1, -0.5]),
    has_c=st.booleans(),
    overwrite_c=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_gemm(dtype, m, n, k, trans, layouts, beta, has_c, overwrite_c, seed):
    rng = np.random.default_rng(seed)
    alpha = 2 - 0.5j if np.dtype(dtype).kind == "c" else 2
    a = arrange(stored(rng, m, k, trans[0], dtype), layouts[0])
    b = arrange(stored(rng, k, n, trans[1], dtype), layouts[1])
    before = random_array(rng, (m, n), dtype)
    c = arrange(before, layouts[2]) if has_c else None
    beta = beta if has_c else 0
    for function in (wsgemm.gemm, TYPED[dtype]):
        if has_c:
            c[...] = before
        result = function(alpha, a, b, beta, c, trans[0], trans[1], overwrite_c)
        assert_product(result, OPS[trans[0]](a), OPS[trans[1]](b), alpha, beta, before)
        if has_c and overwrite_c:
            assert result is c
        else:
            assert result.flags.f_contiguous
            if has_c:
                np.testing.assert_array_equal(c, before)


def test_keywords_are_those_of_scipy():
    a, b, c = np.ones((3, 2), "float32"), np.ones((4, 3), "float32"), np.ones((2, 4), "float32")
    result = wsgemm.sgemm(alpha=2, a=a, b=b, beta=10, c=c, trans_a=1, trans_b=True, overwrite_c=0)
    assert (result == 16).all() and (c == 1).all()


def test_c_may_be_an_operand():
    rng = np.random.default_rng(31)
    x = integer_array(rng, (5, 5), "complex64")
    expected = x.conj().T @ x + 2 * x
    out = x.copy()
    assert wsgemm.cgemm(1, out, out, 2, out, trans_a=2, overwrite_c=1) is out
    np.testing.assert_array_equal(out, expected)


def test_read_only_c_is_fine_unless_overwritten():
    ones = np.ones((3, 3), "float32")
    c = np.ones((3, 3), "float32")
    c.flags.writeable = False
    assert (wsgemm.sgemm(1, ones, ones, 1, c) == 4).all()
    with pytest.raises(ValueError, match="c is read-only"):
        wsgemm.sgemm(1, ones, ones, 1, c, overwrite_c=1)


ONES = np.ones((3, 4), "float32")
BAD = [
    (wsgemm.dgemm, (1, ONES, ONES.T), {}, TypeError, ["dgemm takes float64", "a is float32", "b is float32"]),
    (wsgemm.sgemm, (1, ONES, ONES.T.astype("float64")), {}, TypeError, ["sgemm takes float32", "b is float64"]),
    (wsgemm.gemm, (1, ONES, ONES.T.astype("float64")), {}, TypeError, ["a is float32", "b is float64"]),
    (wsgemm.gemm, (1, ONES, ONES), {}, ValueError, ["op(a) has shape (3, 4)", "4 columns of op(a)", "3 rows of op(b)"]),
    (wsgemm.gemm, (1, ONES, ONES.T), {"trans_a": 1}, ValueError, ["op(a) has shape (4, 3)", "op(b) has shape (4, 3)"]),
    (wsgemm.gemm, (1, ONES, ONES.T), {"trans_b": 3}, ValueError, ["trans_b is 3"]),
    (wsgemm.gemm, (1, ONES, ONES.T), {"trans_a": "T"}, ValueError, ["trans_a is 'T'"]),
    (wsgemm.gemm, (1, ONES, np.ones(4, "float32")), {}, ValueError, ["(3, 4)", "(4,)", "matrices"]),
    (wsgemm.gemm, (1, ONES, ONES.T, 1), {}, ValueError, ["beta = 1 needs c"]),
    (wsgemm.gemm, (1j, ONES, ONES.T), {}, TypeError, ["alpha is complex", "float32"]),
    (wsgemm.gemm, (1, ONES, ONES.T, 1, np.ones((3, 3))), {}, TypeError, ["c is float64", "float32"]),
    (wsgemm.gemm, (1, ONES, ONES.T, 1, ONES), {}, ValueError, ["c has shape (3, 4)", "op(a) @ op(b) has shape (3, 3)"]),
    (wsgemm.gemm, (1, ONES, ONES.T, 1, [[1.0] * 3] * 3), {}, TypeError, ["c must be a NumPy array", "list"]),
]


@pytest.mark.parametrize("function, arguments, keywords, exception, words", BAD)
def test_bad_arguments(function, arguments, keywords, exception, words):
    with pytest.raises(exception) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is exception
    for word in words:
        assert word in str(caught.value)
