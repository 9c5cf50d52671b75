"""out, alpha and beta: written in any layout, nothing else touched, and right when out overlaps the operands."""

import numpy as np
import pytest
import wsgemm
from hypothesis import given
from hypothesis import strategies as st
from wsgemm_reference import DTYPES, LAYOUTS, STACK_LAYOUTS, arrange, assert_product, integer_array, random_array

SCALARS = st.sampled_from([0, 1, -1, 2, 0.5, -1.5])


@given(
    dtype=st.sampled_from(DTYPES),
    m=st.integers(0, 20),
    n=st.integers(0, 20),
    k=st.integers(0, 20),
    layouts=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3),
    alpha=SCALARS,
    beta=SCALARS,
    imaginary=SCALARS,
    seed=st.integers(0, 2**32 - 1),
)
def test_out_in_any_layout(dtype, m, n, k, layouts, alpha, beta, imaginary, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        alpha, beta = alpha + 1j * imaginary, beta - 2j * imaginary
    a = arrange(random_array(rng, (m, k), dtype), layouts[0])
    b = arrange(random_array(rng, (k, n), dtype), layouts[1])
    before = random_array(rng, (m, n), dtype)
    out = arrange(before, layouts[2])
    around = out.base.copy() if isinstance(out.base, np.ndarray) else None
    assert wsgemm.matmul(a, b, out, alpha, beta) is out
    assert_product(out, a, b, alpha, beta, before)
    if around is not None:
        out[...] = before  # what is left of the memory round it must be as it was
        np.testing.assert_array_equal(out.base, around)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", STACK_LAYOUTS)
def test_stack_written_to_out(layout, dtype):
    rng = np.random.default_rng(21)
    a, b = integer_array(rng, (4, 5, 6), dtype), integer_array(rng, (4, 6, 7), dtype)
    before = integer_array(rng, (4, 5, 7), dtype)
    out = arrange(before, layout)
    assert wsgemm.matmul(a, b, out=out, alpha=2, beta=-1) is out
    np.testing.assert_array_equal(out, 2 * np.matmul(a, b) - before)


@pytest.mark.parametrize("shape_a, shape_b", [((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((6, 3, 4), (4,)), ((4,), (6, 4, 5))])
def test_vectors_written_to_out(shape_a, shape_b):
    rng = np.random.default_rng(22)
    a, b = integer_array(rng, shape_a, "float64"), integer_array(rng, shape_b, "float64")
    expected = np.matmul(a, b)
    out = np.full(np.shape(expected), np.nan)
    assert wsgemm.matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, expected)
    wide = np.zeros((*np.shape(expected), 2))
    wsgemm.matmul(a, b, out=wide[..., 1], beta=1)
    np.testing.assert_array_equal(wide[..., 1], expected)
    assert not wide[..., 0].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_beta_zero_does_not_read_out(dtype):
    for layout in LAYOUTS:
        out = arrange(np.full((5, 7), np.nan, dtype), layout)
        wsgemm.matmul(np.ones((5, 6), dtype), np.ones((6, 7), dtype), out=out)
        assert (out == 6).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_to_sum_leaves_beta_times_out(dtype):
    for shape in ((3, 5), (2, 3, 5), (4, 1, 5)):
        out = np.full(shape, 3, dtype)
        wsgemm.matmul(np.ones((*shape[:-1], 0), dtype), np.ones((0, 5), dtype), out=out, beta=2)
        assert (out == 6).all()
        wsgemm.matmul(np.ones((*shape[:-1], 0), dtype), np.ones((0, 5), dtype), out=out)
        assert (out == 0).all()
    out = np.full((3, 5), 3, dtype)
    nan = np.full((3, 4), np.nan, dtype), np.full((4, 5), np.nan, dtype)
    wsgemm.matmul(*nan, out=out, alpha=0, beta=2)
    assert (out == 6).all()


@pytest.mark.parametrize("number", [2, 2.0, True + 1, np.float32(2), np.float64(2), np.int64(2), np.array(2.0), np.array(2)])
def test_kinds_of_scalars(number):
    ones = np.ones((3, 3), "float32")
    out = np.ones((3, 3), "float32")
    wsgemm.matmul(ones, ones, out=out, alpha=number, beta=number)
    assert (out == 8).all()


def test_scalar_beyond_the_type():
    ones = np.ones((3, 3), "float32")
    with pytest.raises(OverflowError):
        wsgemm.matmul(ones, ones, alpha=1e300)
    assert np.isinf(wsgemm.matmul(ones, ones, alpha=np.inf)).all()


# ---- Overlap -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_is_an_operand(dtype):
    rng = np.random.default_rng(23)
    x, y = integer_array(rng, (6, 6), dtype), integer_array(rng, (6, 6), dtype)
    for place in ("a", "b", "both", "transposed"):
        out = x.copy()
        a, b = {"a": (out, y), "b": (y, out), "both": (out, out), "transposed": (out.T, y)}[place]
        expected = np.matmul(a, b) + 3 * out
        wsgemm.matmul(a, b, out=out, beta=3)
        np.testing.assert_array_equal(out, expected, err_msg=place)


def test_out_overlaps_an_operand_partly():
    rng = np.random.default_rng(24)
    for shift in (0, 1, 3, 7, 35, 36, 37):
        memory = integer_array(rng, 80, "float64")
        a, out = memory[:36].reshape(6, 6), memory[shift : shift + 36].reshape(6, 6)
        b = integer_array(rng, (6, 6), "float64")
        expected = np.matmul(a, b)
        wsgemm.matmul(a, b, out=out)
        np.testing.assert_array_equal(out, expected, err_msg=f"shift {shift}")


def test_stack_written_over_itself():
    rng = np.random.default_rng(25)
    x, y = integer_array(rng, (5, 4, 4), "float32"), integer_array(rng, (5, 4, 4), "float32")
    expected = np.matmul(x[::-1], y)
    wsgemm.matmul(x[::-1], y, out=x)
    np.testing.assert_array_equal(x, expected)


def test_neighbours_in_one_array_are_not_copied():
    memory = np.ones((8, 24), "float32")
    a, b, out = memory[:, :8], memory[:, 8:16], memory[:, 16:]
    assert wsgemm.explain(a, b, out)["copies"] == ""
    assert wsgemm.explain(a, b, memory[:, 15:23])["copies"] == "b"
    wsgemm.matmul(a, b, out=out)
    assert (out == 8).all() and (memory[:, :16] == 1).all()


def test_out_that_overlaps_itself_is_written_like_numpy_does():
    out = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8))
    wsgemm.matmul(np.ones((3, 2)), np.ones((2, 4)), out=out)
    assert (out == 2).all()
