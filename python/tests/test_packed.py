"""Packed operands, as far as no device is needed: arrays in host memory, what reaches the C calls, and what is refused."""

import doctest
import gc
import sys
import weakref

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from wsgemm import _lib
from wsgemm_fakes import Array, Cuda, Lent, Tensor, faked_cupy, faked_jax, faked_torch, gpu, ndarray, zeros  # noqa: F401
from wsgemm_reference import DTYPES, LAYOUTS, STACK_LAYOUTS, arrange, integer_array, random_array, to_bits

FREE = [name for name, (_, is_free) in LAYOUTS.items() if is_free]
OPS = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}


@pytest.fixture
def rng():
    return np.random.default_rng(71)


# ---- Host memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
@pytest.mark.parametrize("layout", list(STACK_LAYOUTS))
def test_arrays_in_host_memory_stand_for_themselves(layout, dtype, rng):
    for shape_a, shape_b in (((3, 40, 30), (30, 20)), ((3, 40, 30), (3, 30, 20)), ((40, 30), (3, 30, 20))):
        a, b = (arrange(random_array(rng, shape, "float32").astype(dtype), layout) for shape in (shape_a, shape_b))
        expected = wsgemm.matmul(a, b)
        with wsgemm.prepack(a, "a") as packed_a, wsgemm.prepack(b, "b") as packed_b:
            assert (packed_a.nbytes, packed_b.nbytes, packed_b.array is b) == (0, 0, True)
            for left, right in ((a, packed_b), (packed_a, b), (packed_a, packed_b)):
                np.testing.assert_array_equal(wsgemm.matmul(left, right), expected)
            out = np.zeros_like(expected)
            assert wsgemm.matmul(a, packed_b, out) is out
            np.testing.assert_array_equal(out, expected)
            assert wsgemm.explain(packed_a, packed_b) == wsgemm.explain(a, b)


@pytest.mark.parametrize("trans_a", [0, 1, 2])
@pytest.mark.parametrize("trans_b", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_gemm_in_host_memory(dtype, trans_a, trans_b, rng):
    a, b = OPS[trans_a](integer_array(rng, (5, 6), dtype)), OPS[trans_b](integer_array(rng, (6, 7), dtype))
    packed_a, packed_b = wsgemm.prepack(a, "a", trans=trans_a), wsgemm.prepack(b, trans=trans_b)
    for function in (wsgemm.gemm, wsgemm.sgemm if dtype == "float32" else wsgemm.zgemm):
        result = function(2, packed_a, packed_b, trans_a=trans_a, trans_b=trans_b)
        np.testing.assert_array_equal(result, 2 * (OPS[trans_a](a) @ OPS[trans_b](b)))


def test_other_arguments_in_host_memory(rng):
    a, b, c = (integer_array(rng, shape, "float32") for shape in ((4, 6), (6, 5), (4, 5)))
    packed = wsgemm.prepack(b)
    np.testing.assert_array_equal(wsgemm.matmul(a, packed, bias=c[0], activation="relu"), np.maximum(a @ b + c[0], 0))
    np.testing.assert_array_equal(wsgemm.matmul(a[0], packed), a[0] @ b)
    np.testing.assert_array_equal(wsgemm.matmul(a, wsgemm.prepack(b[:, 0])), a @ b[:, 0])
    np.testing.assert_array_equal(wsgemm.matmul(a.tolist(), wsgemm.prepack(b.tolist())), a.tolist() @ b)
    np.testing.assert_array_equal(wsgemm.matmul(a, packed, beta=2, out=c.copy()), a @ b + 2 * c)
    overlapping = b[:4].T.copy().T  # what shares memory with out is copied, as ever
    wsgemm.matmul(wsgemm.prepack(overlapping[:, :4], "a"), b[:4], overlapping)
    np.testing.assert_array_equal(overlapping, b[:4, :4] @ b[:4])
    empty = wsgemm.prepack(zeros(6, 0, dtype="float32"))
    assert wsgemm.matmul(a, empty).shape == (4, 0) and empty.nbytes == 0
    bits = to_bits(integer_array(rng, (3, 3), "float32"))
    np.testing.assert_array_equal(wsgemm.bgemm(1, bits, wsgemm.prepack(bits)), wsgemm.bgemm(1, bits, bits))


def test_examples():
    failures, n_tests = doctest.testmod(sys.modules["wsgemm._prepack"])
    assert failures == 0 and n_tests > 3


def test_size_in_host_memory():
    for x in (zeros(300, 300), zeros(300, 300, dtype="float32"), zeros(0, 3), [[1.0]], zeros(3)):
        assert wsgemm.packed_size(x) == wsgemm.packed_size(x, "a", order="F") == 0
    assert wsgemm.packed_size(zeros(3, 4), trans=1, handle=wsgemm.Handle(math="tf32")) == 0


# ---- Refused ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("put", [lambda x: x, Cuda])
@pytest.mark.parametrize(
    "x, keywords, error, words",
    [
        (zeros(3, 4), {"side": "c"}, ValueError, "side is 'c', but it must be 'a' or 'b'"),
        (zeros(3, 4), {"order": "K"}, ValueError, "order is 'K', but it must be 'C' or 'F'"),
        (zeros(3, 4), {"trans": 3}, ValueError, "trans is 3"),
        (zeros(2, 3, 4), {"trans": 1}, ValueError, r"x has shape \(2, 3, 4\), but trans = 1 takes a matrix"),
        (zeros(3), {"trans": 2}, ValueError, r"x has shape \(3,\), but trans = 2 takes a matrix"),
        (zeros(), {}, ValueError, r"x has shape \(\), but needs at least one dimension"),
        (zeros(3, 4, dtype="int32"), {}, TypeError, "x is int32, but it must be float16, float32"),
        (zeros(3, 4, dtype=">f4"), {}, TypeError, "x is float32 in swapped byte order"),
    ],
)
def test_bad_arguments(gpu, put, x, keywords, error, words):  # noqa: F811
    for function in (wsgemm.prepack, wsgemm.packed_size):
        with pytest.raises(error, match=words):
            function(put(x), **keywords)
    assert not gpu.log


def test_masked_arrays():
    with pytest.raises(TypeError, match="x is a masked array"):
        wsgemm.prepack(np.ma.ones((3, 3)))


@pytest.mark.parametrize("put", [lambda x: x, Cuda])
def test_in_the_wrong_place(gpu, put):  # noqa: F811
    x, out = put(np.ones((4, 4), "float32")), put(zeros(4, 4, dtype="float32"))
    packed = wsgemm.prepack(x, memory=Cuda(zeros(128, dtype="uint8")))
    with pytest.raises(ValueError, match="a was packed as the operand b; pass side='a' to prepack"):
        wsgemm.matmul(packed, x, out)
    with pytest.raises(ValueError, match="b was packed with trans = 0, but is multiplied with 1"):
        wsgemm.gemm(1, x, packed, 0, out, trans_b=1)
    with pytest.raises(ValueError, match="do not fit"):
        wsgemm.matmul(put(np.ones((4, 3), "float32")), packed, out)
    with pytest.raises(TypeError, match="out must be a NumPy array, not Packed|out lies in host memory .wsgemm.Packed"):
        wsgemm.matmul(x, x, wsgemm.prepack(x, memory=Cuda(zeros(128, dtype="uint8"))))
    packed.close()
    packed.close()
    assert packed.nbytes == 0 and packed.array is x and repr(packed) == "<wsgemm.Packed b, closed>"
    for function in (wsgemm.matmul, wsgemm.explain):
        with pytest.raises(ValueError, match="b is a packed operand that was closed"):
            function(x, packed, out)
    assert not [entry for entry in gpu.log if entry[0] == "gemm"]


def test_mixed_places(gpu):  # noqa: F811
    host = np.ones((4, 4), "float32")
    on_gpu = wsgemm.prepack(Cuda(host), memory=Cuda(zeros(128, dtype="uint8")))
    with pytest.raises(TypeError, match="a lies in host memory .numpy.ndarray.*b lies on a GPU .wsgemm_fakes.Cuda"):
        wsgemm.matmul(host, on_gpu)
    with pytest.raises(TypeError, match="a lies on a GPU .*b lies in host memory .numpy.ndarray"):
        wsgemm.matmul(Cuda(host), wsgemm.prepack(host))


# ---- On a GPU: what is packed is what the products ask for -------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dtype=st.sampled_from(["float32", "complex64"]),
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    layouts=st.tuples(*[st.sampled_from(FREE)] * 3),
    trans=st.tuples(*[st.sampled_from([0, 1, 2])] * 2),
    is_packed=st.tuples(*[st.booleans()] * 2),
    is_conjugated=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_matrices_in_any_layout(gpu, torch, dtype, sizes, layouts, trans, is_packed, is_conjugated, seed):  # noqa: F811
    # The recorder compares.
    rng = np.random.default_rng(seed)
    m, n, k = sizes
    shapes = ((k, m) if trans[0] else (m, k), (n, k) if trans[1] else (k, n), (m, n))
    a, b, c = (arrange(integer_array(rng, shape, dtype), layout) for shape, layout in zip(shapes, layouts))
    x, y = Tensor(a), Tensor(b)
    if is_conjugated and dtype == "complex64":
        x.conjugated = True
        a = a.conj()
    expected = OPS[trans[0]](a) @ OPS[trans[1]](b)
    by_column = abs(c.strides[1]) > abs(c.strides[0])
    # A vector is by rows or by columns as it happens: see _layout.leading.
    assume(dtype == "float32" or (m > 1 and n > 1) or layouts[2] == "c")
    order = "F" if by_column and layouts[2] != "c" else "C"
    packed_x = wsgemm.prepack(x, "a", trans=trans[0], order=order) if is_packed[0] else x
    packed_y = wsgemm.prepack(y, "b", trans=trans[1], order=order) if is_packed[1] else y
    gpu.descs.clear()
    wsgemm.gemm(1, packed_x, packed_y, 0, Tensor(c), *trans, overwrite_c=1)
    np.testing.assert_array_equal(c, expected)
    if trans == (0, 0):
        c[...] = 0
        wsgemm.matmul(packed_x, packed_y, Tensor(c))
        np.testing.assert_array_equal(c, expected)
    for desc in gpu.descs:
        assert (desc.packed_a is not None, desc.packed_b is not None) == is_packed


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("layout", [name for name, (_, is_free) in STACK_LAYOUTS.items() if is_free])
@pytest.mark.parametrize(
    "shape_a, shape_b, packed",
    [
        ((4, 5, 6), (6, 7), "b"),  # shared: the stack of A's becomes one taller A
        ((4, 5, 6), (6, 7), "a"),
        ((5, 6), (4, 6, 7), "a"),
        ((5, 6), (4, 6, 7), "b"),
        ((4, 5, 6), (4, 6, 7), "ab"),
        ((9, 4, 5, 6), (4, 6, 7), "b"),  # one call for each of 9, although 9 > 4
        ((4, 5, 6), (9, 4, 6, 7), "a"),
        ((9, 1, 5, 6), (4, 6, 7), "b"),
        ((4, 1, 6), (4, 6, 7), "a"),
        ((4, 1, 6), (6, 7), "a"),
        ((4, 5, 6), (1, 6, 7), "b"),
        ((6,), (4, 6, 7), "ab"),
        ((4, 5, 6), (6,), "ab"),
        ((6,), (6,), "ab"),
    ],
)
def test_stacks(gpu, torch, shape_a, shape_b, packed, layout, dtype, rng):  # noqa: F811
    a, b = (
        arrange(integer_array(rng, shape, dtype), layout) if len(shape) in (2, 3) else integer_array(rng, shape, dtype)
        for shape in (shape_a, shape_b)
    )
    x, y = Tensor(a), Tensor(b)
    for one in packed:
        left = wsgemm.prepack(x, "a") if one == "a" else x
        right = wsgemm.prepack(y, "b") if one == "b" else y
        gpu.descs.clear()
        np.testing.assert_array_equal(wsgemm.matmul(left, right).array, a @ b)
        assert all(desc.packed_a if one == "a" else desc.packed_b for desc in gpu.descs)
        if dtype == "float32":
            result = wsgemm.matmul(left, right, activation="relu", out_scale=2)
            np.testing.assert_array_equal(result.array, 2 * np.maximum(a @ b, 0))
            assert all(desc.packed_a if one == "a" else desc.packed_b for desc in gpu.descs)


def test_a_packed_stack_takes_one_call(gpu, torch, rng):  # noqa: F811
    a, b = integer_array(rng, (9, 3, 4), "float32"), integer_array(rng, (9, 4, 5), "float32")
    packed = wsgemm.prepack(Tensor(b))
    wsgemm.matmul(Tensor(a), packed)
    (desc,) = gpu.descs
    assert (desc.batch_count, desc.stride_a, desc.stride_b, desc.stride_c) == (9, 12, 20, 15)


def test_stacks_that_are_not_gone_through_in_one(gpu, torch, rng):  # noqa: F811
    b = integer_array(rng, (2, 3, 4, 5), "float32")
    packed = wsgemm.prepack(Tensor(b))
    a = integer_array(rng, (2, 3, 6, 4), "float32")
    np.testing.assert_array_equal(wsgemm.matmul(Tensor(a), packed).array, a @ b)
    for other in (a[:, :1], a[:, ::-1], np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1)):
        for more in ({}, {"activation": "relu"}):
            with pytest.raises(ValueError, match="b was packed as a stack of 6 matrices, through which this product does not go"):
                wsgemm.matmul(Tensor(other), packed, **more)
    for uneven in (b[:, ::2], b[::-1]):
        with pytest.raises(ValueError, match="its matrices do not follow at equal steps"):
            wsgemm.prepack(Tensor(uneven))
    broadcast = np.broadcast_to(b[0, 0], (7, 4, 5))
    packed = wsgemm.prepack(Tensor(broadcast))
    for other in (a[0, 0], integer_array(rng, (7, 6, 4), "float32")):
        np.testing.assert_array_equal(wsgemm.matmul(Tensor(other), packed).array, other @ broadcast)


def test_order_of_complex_results(gpu, torch, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "complex64"), integer_array(rng, (4, 5), "complex64")
    by_rows, by_columns = zeros(3, 5, dtype="complex64"), zeros(5, 3, dtype="complex64").T
    for order, out, other in (("C", by_rows, by_columns), ("F", by_columns, by_rows)):
        packed = wsgemm.prepack(Tensor(b), order=order)
        wsgemm.matmul(Tensor(a), packed, Tensor(out))
        np.testing.assert_array_equal(out, a @ b)
        with pytest.raises(ValueError, match="b was packed for complex results in '[CF]' order, but this one is in '[CF]'"):
            wsgemm.matmul(Tensor(a), packed, Tensor(other))
    a, b = a.real.copy(), b.real.copy()
    packed = wsgemm.prepack(Tensor(b))
    for out in (zeros(3, 5, dtype="float32"), zeros(5, 3, dtype="float32").T):
        wsgemm.matmul(Tensor(a), packed, Tensor(out))
        np.testing.assert_array_equal(out, a @ b)


def test_epilogue(gpu, torch, rng):  # noqa: F811
    a, b, bias = (integer_array(rng, shape, "float32") for shape in ((3, 4), (4, 5), (5,)))
    packed = wsgemm.prepack(Tensor(b))
    result = wsgemm.matmul(Tensor(a), packed, bias=Tensor(bias), residual=Tensor(a @ b), out_scale=2)
    np.testing.assert_array_equal(result.array, 2 * (a @ b + bias) + a @ b)
    (desc,) = gpu.descs
    assert (desc.out_scale, desc.bias) == (2, bias.ctypes.data) and desc.packed_b in gpu.packed
    wsgemm.matmul(Tensor(a), packed, alpha=3)
    assert gpu.descs[-1].out_scale == 1 and gpu.descs[-1].alpha.s == 3


def test_explain(gpu, torch, monkeypatch, rng):  # noqa: F811
    seen = []
    monkeypatch.setattr(_lib, "text", lambda function, handle, desc: [seen.append(_lib.GemmDesc.from_buffer_copy(desc)), {}][1])
    x, y = Tensor(integer_array(rng, (3, 4), "float32")), Tensor(integer_array(rng, (4, 5), "float32"))
    packed = wsgemm.prepack(y)
    assert wsgemm.explain(x, packed) == {"calls": "1", "copies": ""}
    assert seen[0].packed_a is None and seen[0].packed_b in gpu.packed and seen[0].b == y.array.ctypes.data
    with pytest.raises(ValueError, match="b is packed, but may share memory"):
        wsgemm.explain(Tensor(zeros(4, 4, dtype="float32")), packed, y)


@pytest.mark.parametrize("x", [zeros(0, 4, dtype="float32"), zeros(4, 5), zeros(4, 5, dtype="float16")])
def test_what_has_no_packed_form(gpu, x):  # noqa: F811
    memory = np.zeros(4, "uint8")
    packed = wsgemm.prepack(Cuda(x), memory=Cuda(memory))
    assert packed.nbytes == wsgemm.packed_size(Cuda(x)) == 0
    out = np.ones((3, x.shape[1]), x.dtype)
    wsgemm.matmul(Cuda(np.zeros((3, len(x)), x.dtype)), packed, Cuda(out))
    assert not out.any() and not memory.any() and not gpu.packed


# ---- On a GPU: memory, streams, lifetimes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [Tensor, ndarray, Array])
def test_memory_of_the_same_library(gpu, torch, cupy, jax, array, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "float32"), integer_array(rng, (4, 5), "float32")
    x = array(b)
    assert wsgemm.packed_size(x) == 160 and not gpu.log
    packed = wsgemm.prepack(x)
    assert packed.nbytes == 160 and packed.array is x and (packed.side, repr(packed)) == ("b", "<wsgemm.Packed b, 160 bytes>")
    result = wsgemm.matmul(array(a), packed)
    assert type(result) is array
    np.testing.assert_array_equal(result.array, a @ b)
    stream = {Tensor: 5, ndarray: 6, Array: 1}[array]
    waits = [("wait", stream)] if array is Array else []
    assert [entry for entry in gpu.log if entry != "deleted"] == [("prepack", stream), *waits, ("gemm", stream), *waits]


def test_other_libraries_make_no_memory(gpu):  # noqa: F811
    with pytest.raises(
        TypeError, match="x is a wsgemm_fakes.Cuda, of a library that wsgemm cannot ask for memory; pass 160 bytes"
    ):
        wsgemm.prepack(Cuda(zeros(4, 5, dtype="float32")))
    assert not gpu.log


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_memory_of_another_library(gpu, torch, cupy, dtype, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "float32"), integer_array(rng, (4, 5), "float32")
    memory = np.zeros(20 * 8 // np.dtype(dtype).itemsize, dtype)
    packed = wsgemm.prepack(Tensor(b), memory=ndarray(memory))
    assert (memory.view("uint8") == 0xAB).all()
    np.testing.assert_array_equal(wsgemm.matmul(Tensor(a), packed).array, a @ b)
    # On the memory's stream; cupy is told that products read it.
    assert gpu.log == [("order", 5, 6), ("prepack", 6), ("order", 6, 5), ("order", 6, 5), ("gemm", 5), ("order", 5, 6)]
    gpu.log.clear()
    packed = wsgemm.prepack(Tensor(b), memory=Lent(memory))
    wsgemm.matmul(Tensor(a), packed)
    gpu.log.remove(("destroy", 0xBAD001))
    assert gpu.log == [("prepack", 5), ("wait", 5), ("gemm", 5), ("wait", 5)]
    gpu.log.clear()
    tensor = Tensor(memory)
    wsgemm.matmul(Tensor(a), wsgemm.prepack(Tensor(b), memory=tensor))
    assert tensor.n_written == 1 and gpu.log[:1] == [("prepack", 5)] and ("gemm", 5) in gpu.log
    assert not [entry for entry in gpu.log if entry[0] == "order"]


@pytest.mark.parametrize(
    "memory, error, words",
    [
        (zeros(160, dtype="uint8"), TypeError, "x lies on a GPU .*, memory lies in host memory .numpy.ndarray"),
        (Cuda(zeros(160, dtype="uint8"), readonly=True), ValueError, "memory is read-only"),
        (Lent(zeros(160, dtype="uint8"), (1, 0), flags=2), ValueError, "memory is read-only"),
        (Array(zeros(160, dtype="uint8")), ValueError, "memory is a wsgemm_fakes.Array, which cannot be written"),
        (Cuda(zeros(320, dtype="uint8")[::2]), ValueError, r"memory has shape \(160,\) and strides \(2,\); pass a contiguous"),
        (Cuda(zeros(159, dtype="uint8")), wsgemm.WsgemmError, "WSGEMM_WORKSPACE_TOO_SMALL"),
    ],
)
def test_bad_memory(gpu, jax, memory, error, words):  # noqa: F811
    with pytest.raises(error, match=words):
        wsgemm.prepack(Cuda(zeros(4, 5, dtype="float32")), memory=memory)
    assert not gpu.packed


def test_memory_lies_apart_on_one_gpu(gpu):  # noqa: F811
    x, memory = zeros(40, dtype="float32"), zeros(160, dtype="uint8")
    with pytest.raises(ValueError, match="memory may share memory with x"):
        wsgemm.prepack(Cuda(x[:20].reshape(4, 5)), memory=Cuda(x))
    gpu.device_of = lambda address: int(address == memory.ctypes.data)
    with pytest.raises(ValueError, match="x lies on GPU 0, memory lies on GPU 1; all must be together"):
        wsgemm.prepack(Cuda(x[:20].reshape(4, 5)), memory=Cuda(memory))
    gpu.device_of = lambda address: -1
    for function in (wsgemm.prepack, wsgemm.packed_size):
        with pytest.raises(wsgemm.WsgemmError, match="x is said to lie at"):
            function(Cuda(x[:20].reshape(4, 5)))
    assert not gpu.log


@pytest.mark.parametrize("keywords", [{}, {"activation": "relu"}])
def test_packed_operands_are_not_copied(gpu, torch, keywords):  # noqa: F811
    square = Tensor(np.ones((12, 12), "float32"))
    packed = wsgemm.prepack(square)
    with pytest.raises(ValueError, match="b is packed, but may share memory with the result"):
        wsgemm.matmul(Tensor(zeros(12, 12, dtype="float32")), packed, square, **keywords)
    with pytest.raises(ValueError, match="x has shape .12, 6. and strides .12, 2. as a matrix.*pack a contiguous copy"):
        wsgemm.prepack(Tensor(square.array[:, ::2]))
    negated = Tensor(square.array)
    negated.negated = True
    with pytest.raises(ValueError, match="x lies elsewhere every time"):
        wsgemm.prepack(negated)


def test_gradients_are_not_lost_in_silence(gpu, torch, monkeypatch):  # noqa: F811
    weight = Tensor(np.ones((3, 3), "float32"))
    weight.requires_grad = True
    with pytest.raises(TypeError, match="x requires a gradient"):
        wsgemm.prepack(weight)
    monkeypatch.setattr(torch, "is_grad_enabled", lambda: False)
    packed = wsgemm.prepack(weight)
    assert (wsgemm.matmul(weight, packed).array == 3).all()
    monkeypatch.setattr(torch, "is_grad_enabled", lambda: True)
    with pytest.raises(TypeError, match="b requires a gradient"):
        wsgemm.matmul(Tensor(np.ones((3, 3), "float32")), packed)


def test_records_and_memory_are_let_go(gpu, torch, rng):  # noqa: F811
    x = Tensor(integer_array(rng, (4, 5), "float32"))
    packed = wsgemm.prepack(x, memory=Tensor(zeros(160, dtype="uint8")))
    memory = weakref.ref(packed._record.memory)

    def close(handle):
        packed.close()
        gc.collect()
        assert memory() is not None and gpu.packed  # the call has them
        return 0

    gpu.on_gemm = close
    wsgemm.matmul(Tensor(zeros(3, 4, dtype="float32")), packed)
    gc.collect()
    assert memory() is None and not gpu.packed
    with wsgemm.prepack(x):
        assert len(gpu.packed) == 1
    assert not gpu.packed


def test_arrays_are_kept(gpu, torch, rng):  # noqa: F811
    x = Tensor(integer_array(rng, (4, 5), "float32"))
    kept = wsgemm.prepack(x)
    array = weakref.ref(x)
    del x
    gc.collect()
    assert array() is not None
    del kept
    gc.collect()
    assert array() is None and not gpu.packed


def test_failing_calls_leave_no_record(gpu, torch, cupy, monkeypatch):  # noqa: F811
    order = sys.modules["wsgemm._streams"].order

    def fail(device, first, then):
        order(device, first, then)
        if gpu.packed:
            raise RuntimeError("no event")

    monkeypatch.setattr("wsgemm._streams.order", fail)
    with pytest.raises(RuntimeError, match="no event"):
        wsgemm.prepack(Tensor(zeros(4, 5, dtype="float32")), memory=ndarray(zeros(160, dtype="uint8")))
    gc.collect()
    assert not gpu.packed


def test_settings_of_the_handle_are_taken_along(gpu, torch, monkeypatch):  # noqa: F811
    import wsgemm._prepack as prepack

    seen = []

    def look(function):
        def called(handle, *arguments):
            value = _lib.c_int()
            assert _lib.library.wsgemm_get_math(handle, _lib.ctypes.byref(value)) == 0
            seen.append(value.value)
            return function(handle, *arguments)

        return called

    for name in ("_get_packed_size", "_prepack"):
        monkeypatch.setattr(prepack, name, look(getattr(prepack, name)))
    x = Tensor(zeros(4, 5, dtype="float32"))
    wsgemm.prepack(x, handle=wsgemm.Handle(math="tf32"))
    wsgemm.prepack(x)
    assert seen == [_lib.Math.MATH_TF32] * 2 + [_lib.Math.MATH_DEFAULT] * 2


def test_the_library_s_own_functions_refuse_host_memory():
    x, memory = zeros(300, 300, dtype="float32"), zeros(1000)
    desc = _lib.DESC_FORMAT[_lib.Type.F32].pack(
        _lib.BASE_DESC_BYTES,
        101,
        111,
        111,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        300,
        300,
        1,
        0,
        0,
        0,
        0,
        0,
        x.ctypes.data,
        300,
        0,
        0,
        1,
        0,
        0,
        0,
    )
    size, record = _lib.c_size_t(7), _lib.c_void_p()
    assert _lib.library.wsgemm_get_packed_size(None, desc, 1, _lib.ctypes.byref(size)) == 0 and size.value == 0
    address = (memory.ctypes.data + 255) // 256 * 256
    status = _lib.library.wsgemm_prepack(None, desc, 1, address, 7000, _lib.ctypes.byref(record))
    assert status == _lib.Status.NOT_SUPPORTED and record.value is None
    assert _lib.library.wsgemm_packed_destroy(None) == 0
