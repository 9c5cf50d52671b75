"""matmul on vectors, matrices and stacks: shapes, types and values as numpy.matmul has them."""

import doctest

import numpy as np
import pytest
import wsgemm
from hypothesis import given
from hypothesis import strategies as st
from wsgemm_reference import DTYPES, LAYOUTS, STACK_LAYOUTS, arrange, assert_product, integer_array, random_array

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((1, 70), (70, 1)),
    ((70, 1), (1, 70)),
    ((65, 33), (33, 129)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (6, 4, 5)),
    ((6, 3, 4), (4,)),
    ((6, 3, 4), (6, 4, 5)),
    ((6, 3, 4), (4, 5)),
    ((3, 4), (6, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((2, 6, 3, 4), (2, 1, 4, 5)),
    ((5, 1, 1, 3, 4), (2, 3, 4, 1)),
    ((7, 1, 4), (7, 4, 5)),
    ((7, 1, 4), (4, 5)),
]
EMPTY_SHAPES = [
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((3, 4), (4, 0)),
    ((0, 0), (0, 0)),
    ((0,), (0,)),
    ((0,), (0, 5)),
    ((3, 0), (0,)),
    ((0, 3, 4), (0, 4, 5)),
    ((0, 3, 4), (4, 5)),
    ((6, 3, 0), (6, 0, 5)),
    ((6, 3, 0), (0, 5)),
    ((6, 1, 0), (0, 5)),
    ((2, 3, 1, 0), (3, 0, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape_a, shape_b", SHAPES)
def test_values(shape_a, shape_b, dtype):
    rng = np.random.default_rng(1)
    a, b = random_array(rng, shape_a, dtype), random_array(rng, shape_b, dtype)
    result = wsgemm.matmul(a, b)
    assert result.dtype == dtype and type(result) is type(np.matmul(a, b))
    assert_product(result, a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape_a, shape_b", SHAPES + EMPTY_SHAPES)
def test_exact_on_small_integers(shape_a, shape_b, dtype):
    rng = np.random.default_rng(2)
    a, b = integer_array(rng, shape_a, dtype), integer_array(rng, shape_b, dtype)
    expected = np.matmul(a, b)
    result = wsgemm.matmul(a, b)
    assert np.shape(result) == np.shape(expected) and result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_result_is_c_ordered():
    rng = np.random.default_rng(3)
    a, b = random_array(rng, (6, 7), "float32"), random_array(rng, (7, 8), "float32")
    for x, y in ((a, b), (b.T, a.T), (a.copy("F"), b.copy("F"))):
        assert wsgemm.matmul(x, y).flags.c_contiguous


@given(
    dtype=st.sampled_from(DTYPES),
    m=st.integers(0, 40),
    n=st.integers(0, 40),
    k=st.integers(0, 40),
    layout_a=st.sampled_from(list(LAYOUTS)),
    layout_b=st.sampled_from(list(LAYOUTS)),
    is_readonly=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_matrices_in_any_layout(dtype, m, n, k, layout_a, layout_b, is_readonly, seed):
    rng = np.random.default_rng(seed)
    a = arrange(random_array(rng, (m, k), dtype), layout_a)
    b = arrange(random_array(rng, (k, n), dtype), layout_b)
    a.flags.writeable = b.flags.writeable = not is_readonly
    assert_product(wsgemm.matmul(a, b), a, b)


@st.composite
def stacks(draw):
    """Two broadcastable stack shapes of up to three dimensions."""
    full = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    shapes = []
    for _ in range(2):
        kept = full[draw(st.integers(0, len(full))) :]
        shapes.append(tuple(draw(st.sampled_from((size, 1))) for size in kept))
    return shapes


@given(
    dtype=st.sampled_from(DTYPES),
    shapes=stacks(),
    m=st.integers(1, 6),
    n=st.integers(1, 6),
    k=st.integers(0, 6),
    layout_a=st.sampled_from(list(STACK_LAYOUTS)),
    layout_b=st.sampled_from(list(STACK_LAYOUTS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_stacks_in_any_layout(dtype, shapes, m, n, k, layout_a, layout_b, seed):
    rng = np.random.default_rng(seed)
    a = arrange(integer_array(rng, (*shapes[0], m, k), dtype), layout_a)
    b = arrange(integer_array(rng, (*shapes[1], k, n), dtype), layout_b)
    result = wsgemm.matmul(a, b)
    expected = np.matmul(a, b)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


def test_broadcast_views_of_the_caller():
    rng = np.random.default_rng(4)
    a = np.broadcast_to(integer_array(rng, (3, 4), "float64"), (5, 2, 3, 4))
    b = np.broadcast_to(integer_array(rng, (2, 4, 1), "float64"), (5, 2, 4, 6))
    np.testing.assert_array_equal(wsgemm.matmul(a, b), np.matmul(a, b))


def test_stack_walked_backwards():
    rng = np.random.default_rng(5)
    a, b = integer_array(rng, (5, 3, 4), "float32"), integer_array(rng, (5, 4, 2), "float32")
    np.testing.assert_array_equal(wsgemm.matmul(a[::-1], b), np.matmul(a[::-1], b))
    np.testing.assert_array_equal(wsgemm.matmul(a[::-1], b[::-1]), np.matmul(a[::-1], b[::-1]))


def test_nan_and_infinity_spread_as_in_numpy():
    a, b = np.ones((3, 4)), np.ones((4, 5))
    a[1, 2], b[3, 4] = np.nan, np.inf
    np.testing.assert_array_equal(wsgemm.matmul(a, b), np.matmul(a, b))


class Subclass(np.ndarray):
    pass


class HasInterface:
    """Not an array, but tells where one is."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def test_anything_that_numpy_makes_an_array_of():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    expected = np.matmul(a, b)
    for other in (memoryview(b), HasInterface(b), b.tolist(), b.view(Subclass)):
        result = wsgemm.matmul(a, other)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, expected)


def test_operands_are_left_alone():
    rng = np.random.default_rng(6)
    for layout in LAYOUTS:
        a, b = arrange(random_array(rng, (5, 6), "float32"), layout), arrange(random_array(rng, (6, 7), "float32"), layout)
        before = a.copy(), b.copy()
        wsgemm.matmul(a, b)
        np.testing.assert_array_equal(a, before[0])
        np.testing.assert_array_equal(b, before[1])


def test_docstrings():
    failures, n_tests = doctest.testmod(wsgemm)
    assert n_tests > 0 and failures == 0
