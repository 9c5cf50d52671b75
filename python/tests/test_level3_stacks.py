"""Stacks of matrices for Level 3: one call by descriptor where the strides allow, broadcast as numpy.matmul would, in every memory
order, in host memory and as faked device arrays. The calls for two matrices, which test_level3.py judges, are the reference."""

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_level3 import CASES, Case, right_side
from wsgemm_fakes import Array, Cuda, Tensor, faked_cupy, faked_jax, faked_torch, gpu, ndarray  # noqa: F401
from wsgemm_reference import DTYPES, STACK_LAYOUTS, arrange, integer_array

TRIANGULAR = ("trmm", "solve_triangular")
# (of a, of b, of both together): as many cases of broadcasting as matmul has.
STACKS = [((3,), (3,), (3,)), ((), (3,), (3,)), ((3,), (), (3,)), ((2, 3), (3,), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((0,), (1,), (0,))]
SIZES = {name: st.integers(0, 9) for name in ("m", "n", "k")}


class Stack:
    """Calls of one routine with one set of arguments, for stacks of these shapes."""

    def __init__(self, stacks, rng, dtype, **arguments):
        make = lambda: Case(rng=rng, dtype=dtype, **arguments)  # noqa: E731
        self.case = case = make()
        stack_a, stack_b, self.stack = stacks
        if case.b is None:
            self.stack = stack_a
        self.a = self._stacked(stack_a, case.a.shape, dtype, lambda: make().a)
        b = right_side(case)
        self.b = None if b is None else self._stacked(stack_b, b.shape, dtype, lambda: right_side(make()))
        self.c = None if case.c is None else integer_array(rng, (*self.stack, *case.c.shape), dtype)
        self.overwrites = "b" if case.routine in TRIANGULAR and stack_b == self.stack else "c" if case.c is not None else ""

    @staticmethod
    def _stacked(stack, shape, dtype, make):
        x = np.empty((*stack, *shape), dtype)
        for idx in np.ndindex(stack):
            x[idx] = make()
        return x

    def expected(self):
        """One call for each."""
        a, b = (x if x is None else np.broadcast_to(x, (*self.stack, *x.shape[-2:])) for x in (self.a, self.b))
        shape = right_side(self.case).shape if self.case.routine in TRIANGULAR else self.case.product.shape
        result = np.empty((*self.stack, *shape), self.a.dtype)
        for idx in np.ndindex(self.stack):
            result[idx] = self.case.call(a[idx], None if b is None else b[idx], None if self.c is None else self.c[idx], False)
        return result

    def check(self, put, get, layouts, overwrite):
        overwrite = overwrite and bool(self.overwrites)
        arrays = [None if x is None else put(arrange(x.copy(), layout)) for x, layout in zip((self.a, self.b, self.c), layouts)]
        result = self.case.call(*arrays, overwrite)
        np.testing.assert_array_equal(get(result), self.expected())
        written = arrays["abc".index(self.overwrites)] if overwrite else None
        assert written is None or result is written
        for x, before in zip(arrays, (self.a, self.b, self.c)):
            if x is not None and x is not written:
                np.testing.assert_array_equal(get(x), before)
        return result


ARGUMENTS = {**CASES, **SIZES, "stacks": st.sampled_from(STACKS), "overwrite": st.booleans(), "seed": st.integers(0, 2**32 - 1)}


@settings(max_examples=1000)
@given(layouts=st.tuples(*[st.sampled_from(list(STACK_LAYOUTS))] * 3), **ARGUMENTS)
def test_every_routine(layouts, overwrite, seed, **arguments):
    stack = Stack(rng=np.random.default_rng(seed), **arguments)
    if () in (stack.a.shape[:-2], () if stack.b is None else stack.b.shape[:-2], stack.stack):
        layouts = ["c" if name in ("stack_innermost", "rows_outside") else name for name in layouts]
    stack.check(lambda x: x, lambda x: x, layouts, overwrite)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(layouts=st.tuples(*[st.sampled_from(["c", "f", "window"])] * 3), **ARGUMENTS)
def test_tensors(gpu, torch, layouts, overwrite, seed, **arguments):  # noqa: F811
    stack = Stack(rng=np.random.default_rng(seed), **arguments)
    try:
        result = stack.check(Tensor, lambda x: x.array, layouts, overwrite)
    except ValueError as error:  # a copy in column-major order is nothing that torch makes
        assert "cannot read where it lies" in str(error) and "f" in layouts
        return
    assert result.array.size == 0 or result.n_written == 1


def test_other_libraries(gpu, cupy, jax):  # noqa: F811
    rng = np.random.default_rng(12)
    a, b = integer_array(rng, (3, 4, 4), "float64"), integer_array(rng, (4, 2), "float64")
    expected = np.triu(a) @ b
    np.testing.assert_array_equal(wsgemm.trmm(1, ndarray(a), ndarray(b)).array, expected)
    np.testing.assert_array_equal(wsgemm.trmm(1, Array(a), Array(b)).array, expected)
    out = np.zeros((3, 4, 2))
    full = np.triu(a) + np.triu(a, 1).swapaxes(1, 2)
    wsgemm.symm(1, Cuda(a), Cuda(b), 0, Cuda(out), overwrite_c=1)
    np.testing.assert_array_equal(out, full @ b)


# ---- How many calls --------------------------------------------------------------------------------------------------------


def test_one_call_with_strides(gpu, torch):  # noqa: F811
    a, b = np.ones((2, 5, 4, 4), "float32"), np.ones((4, 6), "float32")
    wsgemm.symm(1, Tensor(a), Tensor(b))
    (desc,) = gpu.level3
    assert (desc.batch_count, desc.stride_a, desc.stride_b, desc.stride_c) == (10, 16, 0, 24)
    assert (desc.a, desc.b) == (a.ctypes.data, b.ctypes.data)


def test_a_stack_is_written_where_it_lies(gpu, torch):  # noqa: F811
    base = np.ones((5, 2, 7, 8))
    b = base[:, 1, :6, :]
    a = np.eye(6)[np.newaxis]
    assert wsgemm.trmm(3, Tensor(a), tensor := Tensor(b), overwrite_b=1) is tensor
    (desc,) = gpu.level3
    assert (desc.batch_count, desc.stride_a, desc.stride_b, desc.c, desc.ldb) == (5, 0, 2 * 7 * 8, None, 8)
    np.testing.assert_array_equal(b, 3)
    assert base[:, 0].min() == base[:, 0].max() == 1


def test_steps_that_do_not_join_are_calls_of_their_own(gpu, torch):  # noqa: F811
    a = np.ones((2, 1, 4, 3))
    c = np.zeros((2, 7, 4, 4))
    wsgemm.gemmtr(1, Tensor(a), Tensor(np.ones((7, 3, 4))), 0, Tensor(c), overwrite_c=1)
    assert [(desc.batch_count, desc.stride_a, desc.stride_b) for desc in gpu.level3] == [(7, 0, 12)] * 2
    np.testing.assert_array_equal(c, np.broadcast_to(np.triu(np.full((4, 4), 3.0)), c.shape))


# ---- Memory and arguments --------------------------------------------------------------------------------------------------


def test_a_new_stack_is_c_ordered():
    a = np.ones((3, 4, 4))
    results = wsgemm.symm(1, a, a), wsgemm.syrk(1, a), wsgemm.trmm(1, a, a), wsgemm.solve_triangular(a, a), wsgemm.gemmtr(1, a, a)
    assert all(result.flags.c_contiguous for result in results)
    assert wsgemm.trmm(1, a, np.swapaxes(a, 1, 2)).strides == (128, 8, 32)  # b's order, as of two matrices


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_overlap_the_result(dtype):
    x = integer_array(np.random.default_rng(13), (5, 6, 6), dtype)
    x[:, np.arange(6), np.arange(6)] = 1
    a = x.copy()
    assert wsgemm.trmm(1, x[::-1], x, overwrite_b=1) is x
    np.testing.assert_array_equal(x, np.triu(a[::-1]) @ a)
    x[...] = a
    wsgemm.syrk(1, x[::-1], 0, x, lower=1, overwrite_c=1)
    np.testing.assert_array_equal(x, np.tril(a @ np.swapaxes(a, 1, 2))[::-1] + np.triu(a, 1))


def test_a_result_whose_matrices_overlap_is_written_as_if_one_by_one():
    base = np.zeros(18)
    c = np.lib.stride_tricks.as_strided(base, (3, 3, 3), (24, 24, 8))  # each begins at the row after the last one's first
    wsgemm.gemmtr(1, np.ones((3, 3, 1)), np.ones((3, 1, 3)), 0, c, overwrite_c=1)
    assert set(base) <= {0.0, 1.0}


def test_vectors_for_a_stack_of_triangles():
    a = np.array([[[2.0, 0], [1, 4]], [[1, 0], [0, 1]], [[4, 0], [2, 1]]])
    b = np.array([4.0, 2])
    np.testing.assert_array_equal(wsgemm.solve_triangular(a, b, lower=True), [[2, 0], [4, 2], [1, 0]])


def test_vectors_for_a_stack_of_triangles_on_a_gpu(gpu, torch):  # noqa: F811
    a, b = np.stack([np.eye(3), 2 * np.eye(3)]), np.array([2.0, 4, 6])
    np.testing.assert_array_equal(wsgemm.solve_triangular(Tensor(a), Tensor(b)).array, [[2, 4, 6], [1, 2, 3]])


SQUARES = np.ones((3, 4, 4))
BAD = [
    (wsgemm.symm, (1, SQUARES, np.ones((2, 4, 4))), {}, ["(3, 4, 4)", "(2, 4, 4)", "stacks (3,) and (2,) do not broadcast"]),
    (wsgemm.symm, (1, SQUARES, np.ones((3, 5, 4))), {}, ["a has shape (3, 4, 4)", "on the left of b", "(5, 5)"]),
    (wsgemm.symm, (1, SQUARES, SQUARES, 1, np.ones((4, 4))), {}, ["c has shape (4, 4)", "(3, 4, 4)"]),
    (wsgemm.symm, (1, SQUARES[0], SQUARES[0], 1, SQUARES), {}, ["c has shape (3, 4, 4)", "(4, 4)"]),
    (wsgemm.syr2k, (1, SQUARES, SQUARES[..., :2]), {}, ["a has shape (3, 4, 4)", "b has shape (3, 4, 2)"]),
    (wsgemm.gemmtr, (1, SQUARES, SQUARES[..., :2]), {}, ["(4, 2)", "square"]),
    (wsgemm.trmm, (1, SQUARES, np.ones((4, 4))), {"overwrite_b": 1}, ["b has shape (4, 4)", "the result has shape (3, 4, 4)"]),
    (wsgemm.solve_triangular, (SQUARES, np.ones(4)), {"overwrite_b": 1}, ["b has shape (4,)", "the result has shape (3, 4)"]),
    (wsgemm.symm, (1, SQUARES, np.ones(4)), {}, ["b has shape (4,)", "symm takes matrices, or stacks of them"]),
]


@pytest.mark.parametrize("function, arguments, keywords, words", BAD)
def test_bad_arguments(function, arguments, keywords, words):
    with pytest.raises(ValueError) as caught:
        function(*arguments, **keywords)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("function, arguments, keywords, words", BAD)
def test_bad_arguments_on_a_gpu(gpu, torch, function, arguments, keywords, words):  # noqa: F811
    with pytest.raises(ValueError) as caught:
        function(*(Tensor(x) if isinstance(x, np.ndarray) else x for x in arguments), **keywords)
    for word in words:
        assert word in str(caught.value)
    assert not gpu.level3
