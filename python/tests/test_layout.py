"""What is copied and what is not, and how few calls a stack takes; checked on the plan that explain() tells, too."""

import ctypes

import numpy as np
import pytest
import wsgemm
import wsgemm._product as product
from wsgemm import _lib, _plans
from wsgemm._arrays import KINDS
from wsgemm._layout import BatchPlan, leading, may_overlap_itself
from wsgemm_reference import DTYPES, STACK_LAYOUTS, arrange, integer_array


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", STACK_LAYOUTS)
def test_copied_only_where_blas_cannot_express_it(layout, dtype, rng):
    is_free = STACK_LAYOUTS[layout][1]
    a, b = integer_array(rng, (4, 5, 6), dtype), integer_array(rng, (4, 6, 7), dtype)
    out = arrange(np.zeros((4, 5, 7), dtype), layout)
    told = wsgemm.explain(arrange(a, layout), arrange(b, layout), out)
    assert told["copies"] == ("" if is_free else "out, a, b")
    assert told["calls"] == "1"


def test_vectors_with_any_positive_step_are_not_copied():
    vector = np.zeros(40)[::4]
    assert wsgemm.explain(vector, vector)["copies"] == ""
    assert wsgemm.explain(np.zeros((3, 10)), vector)["copies"] == ""
    assert wsgemm.explain(vector[::-1], vector)["copies"] == "a"


@pytest.fixture
def descs(monkeypatch):
    """The descriptors of all calls made in the test, which are done nonetheless."""
    seen = []
    gemm = product._gemm

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    def record(handle, at):
        packed = ctypes.string_at(at, ctypes.c_size_t.from_address(at).value)
        seen.append(_lib.GemmDesc.from_buffer_copy(packed.ljust(_lib.DESC_BYTES, b"\0")))
        return gemm(handle, packed)

    monkeypatch.setattr(product, "_gemm", record)
    way = _plans.NumpyWay(np)  # in C, which keeps the address of the library's function
    monkeypatch.setattr(_plans.NUMPY, "matmul", way.matmul)
    return seen


def test_operands_are_read_where_they_lie(descs):
    a, b, out = np.ones((4, 30))[:, 5:15], np.ones((8, 30))[:, ::3].T[:, :6], np.ones((4, 9))[:, :6]
    for x, y, z in ((a, b.copy(), out), (a, b.T.copy().T, out), (out.T @ a, a.T, None)):
        result = wsgemm.matmul(x, y, out=z)
        desc = descs.pop()
        assert (desc.a, desc.b, desc.c) == tuple(array.ctypes.data for array in (x, y, result))
    wsgemm.matmul(a, b, out=out)  # b's rows have no unit stride
    desc = descs.pop()
    assert desc.a == a.ctypes.data and desc.b != b.ctypes.data and desc.c == out.ctypes.data


@pytest.mark.parametrize("layout_a", STACK_LAYOUTS)
@pytest.mark.parametrize("layout_out", STACK_LAYOUTS)
def test_descriptors_are_legal(layout_a, layout_out, descs, rng):
    for shape in ((3, 5, 6), (1, 5, 6), (3, 1, 6), (3, 5, 1)):
        a = arrange(integer_array(rng, shape, "complex128"), layout_a)
        b = arrange(integer_array(rng, (shape[2], 7), "complex128")[np.newaxis], layout_a)[0]
        out = arrange(np.zeros((*shape[:2], 7), "complex128"), layout_out)
        for x, z in ((a, out), (a[::-1], out), (a, out[::-1]), (a[0], out[0])):
            wsgemm.matmul(x, b, out=z)
            np.testing.assert_array_equal(z, np.matmul(x, b))
    assert descs
    for desc in descs:
        alignment = np.dtype("complex128").alignment
        assert desc.a % alignment == desc.b % alignment == desc.c % alignment == 0
        assert desc.stride_c >= 0 and min(desc.lda, desc.ldb, desc.ldc) >= 1
        assert desc.batch_count >= 1


def extent(address, is_transposed, rows, cols, ld, itemsize):
    outer, inner = (cols, rows) if is_transposed else (rows, cols)
    return range(address, address + ((outer - 1) * ld + inner) * itemsize)


@pytest.mark.parametrize("place", "ab")
def test_out_never_reaches_the_library_overlapping(place, descs, rng):
    for shift in range(-42, 43):
        memory = integer_array(rng, 130, "float64")
        x, out = memory[42:78].reshape(6, 6), memory[42 + shift : 78 + shift].reshape(6, 6)
        other = integer_array(rng, (6, 6), "float64")
        for view, target in ((x, out), (x.T, out), (x, out.T), (x[:5, 1:], out[1:, :5])):
            operands = (view, other[: len(view), : len(view)])
            if place == "b":
                operands = operands[::-1]
            expected = np.matmul(*operands)
            wsgemm.matmul(*operands, out=target)
            np.testing.assert_array_equal(target, expected)
            desc = descs.pop()
            is_col = desc.layout == _lib.Layout.COL_MAJOR
            c = extent(desc.c, is_col, desc.m, desc.n, desc.ldc, 8)
            a = extent(desc.a, is_col != (desc.transa == _lib.Op.TRANS), desc.m, desc.k, desc.lda, 8)
            b = extent(desc.b, is_col != (desc.transb == _lib.Op.TRANS), desc.k, desc.n, desc.ldb, 8)
            # Interleaved rows may share a range of addresses without sharing an element.
            if not np.shares_memory(view, target):
                continue
            assert c.start >= a.stop or a.start >= c.stop
            assert c.start >= b.stop or b.start >= c.stop


def test_broadcast_operand_is_copied_once():
    a = np.broadcast_to(np.zeros((3, 4))[:, ::2], (50, 3, 2))
    full_a, full_b, full_shape, _ = product.matmul_shapes(a, np.zeros((2, 5)))
    kind = KINDS[a.dtype]
    prepared = product.prepare(kind, full_a, full_b, np.zeros(full_shape), True, product.Options((1, 0, 0, 0), False, kind))
    assert prepared.copies == ("a",) and prepared.arrays[0].size == 6


@pytest.mark.parametrize(
    "shape_a, shape_b, n_calls",
    [
        ((9, 3, 4), (9, 4, 5), 1),
        ((9, 3, 4), (4, 5), 1),
        ((2, 9, 3, 4), (4, 5), 1),
        ((9, 1, 4), (4, 5), 1),
        ((3, 4), (9, 4, 5), 1),
        ((2, 9, 3, 4), (2, 9, 4, 5), 1),
        ((2, 9, 3, 4), (9, 4, 5), 2),
        ((2, 9, 3, 4), (2, 1, 4, 5), 1),
    ],
)
def test_calls_per_stack(shape_a, shape_b, n_calls):
    a, b = np.zeros(shape_a, "float32"), np.zeros(shape_b, "float32")
    told = wsgemm.explain(a, b)
    assert told["calls"] == str(n_calls) and told["copies"] == ""


def turned(x, steps, axes):
    """A stack of (p, q) matrices in memory whose dimensions are gone through by these steps, and in this order."""
    return x[:: steps[0], :: steps[1]].transpose(*axes, 2, 3)


STEPS, AXES = [(1, 1), (-1, 1), (1, -1), (-1, -1)], [(0, 1), (1, 0)]
MORE = {"none": {}, "epilogue": {"activation": "relu"}}


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("steps", STEPS)
def test_stacks_backwards_and_sideways(steps, axes, more, descs):
    rng = np.random.default_rng(37)
    a, b, c = (integer_array(rng, (5, 3, *shape), "float32") for shape in ((3, 4), (4, 6), (3, 6)))
    a = turned(a, steps, axes)
    for other in (steps, (1, 1)):
        x, out = turned(b, other, axes), turned(c, other, axes)
        descs.clear()
        assert wsgemm.matmul(a, x, out, **MORE[more]) is out
        expected = a @ x
        np.testing.assert_array_equal(out, np.maximum(expected, 0) if MORE[more] else expected)
        # Where one array alone goes back in one dimension, its matrices do not follow at equal steps.
        assert len(descs) == (3 if other != steps and steps[0] != steps[1] else 1)
    # A new result is in C order.
    assert wsgemm.explain(a, x)["calls"] == ("1" if steps[0] == steps[1] and axes == (0, 1) else "3")


def test_many_matrices_backwards_take_one_call():
    a, b = np.zeros((1000, 3, 4), "float32")[::-1], np.zeros((1000, 4, 5), "float32")
    for x, y in ((a, b), (a, b[0]), (a[:, :1], b[0]), (b.swapaxes(1, 2)[::-1], b), (a[::2], b[::2])):
        told = wsgemm.explain(x, y)
        assert (told["calls"], told["copies"]) == ("1", "")
    out = np.zeros((1000, 3, 5), "float32")
    assert wsgemm.explain(a, b, out[::-1])["calls"] == wsgemm.explain(a[::-1], b, out[::-1])["calls"] == "1"


def test_stack_against_one_matrix_becomes_one_tall_matrix():
    plan = BatchPlan(3, 5, 4, (4, 1), (5, 1), (5, 1))
    plan.merge((2, 9), (108, 12), (0, 0), (135, 15))
    assert (plan.m, plan.n, plan.k, plan.loops) == (54, 5, 4, [])
    # Column-major C and B, one A: one wide matrix.
    plan = BatchPlan(3, 5, 4, (4, 1), (1, 4), (1, 3))
    plan.merge((9,), (0,), (20,), (15,))
    assert (plan.m, plan.n, plan.k, plan.loops) == (3, 45, 4, [])
    # Padding between the matrices forbids it.
    plan = BatchPlan(3, 5, 4, (4, 1), (5, 1), (5, 1))
    plan.merge((9,), (13,), (0,), (15,))
    assert (plan.m, plan.loops) == (3, [(9, 13, 0, 15)])


def test_loops_are_joined_where_they_follow_on():
    plan = BatchPlan(3, 5, 4, (4, 1), (5, 1), (5, 1))
    plan.merge((2, 9), (108, 12), (180, 20), (135, 15))
    assert plan.loops == [(18, 12, 20, 15)]
    plan.merge((7,), (1000,), (0,), (270,))
    inside, offsets = plan.calls()
    assert inside == (18, 12, 20, 15) and list(offsets) == [(1000 * i, 0, 270 * i) for i in range(7)]


def test_leading():
    assert leading(3, 4, 4, 1) == 4 and leading(3, 4, 9, 1) == 9
    assert leading(3, 4, 1, 3) == -3 and leading(3, 4, 1, 9) == -9
    assert leading(3, 4, 3, 1) == 0 and leading(3, 4, 1, 2) == 0  # rows or columns overlap
    assert leading(3, 4, -4, 1) == 0 and leading(3, 4, 4, -1) == 0 and leading(3, 4, 8, 2) == 0 and leading(3, 4, 0, 1) == 0
    assert leading(1, 4, -7, 1) == 4 and leading(1, 4, 0, 3) == -3 and leading(3, 1, 5, -2) == 5 and leading(1, 1, 0, -5) == 1


def test_overlap_with_itself():
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(10), 4)
    assert may_overlap_itself(windows.shape, [stride // 8 for stride in windows.strides])
    assert may_overlap_itself((3, 4), (0, 1))
    assert not may_overlap_itself((3, 4, 5), (4, 1, 12))
    assert not may_overlap_itself((3, 1, 5), (5, 0, 1))
    assert not may_overlap_itself((3, 4), (-4, -1))


def stack_of(rng, sizes, matrix):
    """Of these sizes, or 1, with its dimensions in any order and direction in memory."""
    order = rng.permutation(len(sizes))
    x = integer_array(rng, (*(sizes[i] for i in order), *matrix), "float32")
    x = x.transpose(*np.argsort(order), -2, -1)
    return x[tuple(slice(None, None, step) for step in rng.choice([-1, 1], len(sizes)))]


@pytest.mark.parametrize("more", MORE)
def test_stacks_of_any_order_and_direction(more, descs):
    rng = np.random.default_rng(38)
    for _ in range(300):
        sizes = tuple(rng.integers(1, 4, 3))
        m, n, k = rng.integers(1, 4, 3)
        a, b, out = (stack_of(rng, sizes, shape) for shape in ((m, k), (k, n), (m, n)))
        b = b[tuple(slice(0, 1) if is_shared else slice(None) for is_shared in rng.random(3) < 0.3)]
        expected = np.matmul(a, b)
        expected = np.maximum(expected, 0) if MORE[more] else expected
        wsgemm.matmul(a, b, out, **MORE[more])
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(wsgemm.matmul(a, b, **MORE[more]), expected)
        if more == "epilogue":
            bias, residual = stack_of(rng, sizes, (1, n)), stack_of(rng, sizes, (m, n))
            sums = np.full((*sizes, n), np.nan, "float32")
            wsgemm.matmul(a, b, out, bias=bias, residual=residual, column_sums=sums)
            np.testing.assert_array_equal(out, np.matmul(a, b) + bias + residual)
            np.testing.assert_array_equal(sums, out.sum(axis=-2))
            before = out.copy()
            wsgemm.matmul(a, b, out, beta=2, bias=bias, column_sums=sums)
            np.testing.assert_array_equal(out, np.matmul(a, b) + 2 * before + bias)
            np.testing.assert_array_equal(sums, out.sum(axis=-2))
    assert all(desc.stride_c >= 0 for desc in descs) and any(desc.stride_a < 0 for desc in descs)
