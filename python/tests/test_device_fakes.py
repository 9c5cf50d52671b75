"""Device arrays as far as no device is needed: what reaches the C call, on which stream, and what is refused."""

import ctypes
import gc
import re
import sys
import threading
import weakref

import numpy as np
import pytest
import wsgemm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wsgemm import _lib, _streams
from wsgemm_fakes import (  # noqa: F401
    Array,
    Cuda,
    Lent,
    Tensor,
    fake_torch,
    faked_cupy,
    faked_jax,
    faked_torch,
    gpu,
    ndarray,
    stream_of,
    zeros,
)
from wsgemm_reference import DTYPES, LAYOUTS, STACK_LAYOUTS, arrange, integer_array

NO, T, CT, C = (int(op) for op in (_lib.Op.NO_TRANS, _lib.Op.TRANS, _lib.Op.CONJ_TRANS, _lib.Op.CONJ_NO_TRANS))


@pytest.fixture
def rng():
    return np.random.default_rng(61)


# ---- Where the elements lie ----------------------------------------------------------------------------------------------


def test_views_are_read_where_they_lie(gpu, rng):  # noqa: F811
    wide = integer_array(rng, (8, 30), "float64")
    a, b, out = wide[:4, 5:15], wide[:, ::3].T[:, :6], zeros(4, 9)[:, :6]
    c = Cuda(out)
    assert wsgemm.matmul(Cuda(a), Cuda(b.T[:6].copy().T), c) is c
    np.testing.assert_array_equal(out, a @ b)
    desc = gpu.descs.pop()
    assert (desc.a, desc.lda, desc.transa, desc.c, desc.ldc) == (a.ctypes.data, 30, NO, out.ctypes.data, 9)
    assert (desc.layout, desc.transb, desc.ldb) == (_lib.Layout.ROW_MAJOR, T, 10)
    assert (desc.m, desc.n, desc.k, desc.batch_count) == (4, 6, 10, 1)
    turned = Cuda(zeros(6, 4).T)
    wsgemm.matmul(Cuda(a), Cuda(np.ascontiguousarray(b)), turned, alpha=2)
    np.testing.assert_array_equal(turned.array, 2 * a @ b)
    desc = gpu.descs.pop()
    assert (desc.layout, desc.transa, desc.transb, desc.ldc) == (_lib.Layout.COL_MAJOR, T, T, 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dtype=st.sampled_from(DTYPES),
    m=st.integers(0, 12),
    n=st.integers(0, 12),
    k=st.integers(0, 12),
    layouts=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3),
    is_lent=st.tuples(*[st.booleans()] * 3),
    beta=st.sampled_from([0, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_matrices_in_any_layout(gpu, dtype, m, n, k, layouts, is_lent, beta, seed):  # noqa: F811
    rng = np.random.default_rng(seed)
    before = integer_array(rng, (m, n), dtype)
    hosts = [
        arrange(x, layout)
        for x, layout in zip((integer_array(rng, (m, k), dtype), integer_array(rng, (k, n), dtype), before), layouts)
    ]
    # DLPack cannot express the address that is not aligned, nor can anything else.
    arrays = [Lent(x) if lent and x.flags.aligned else Cuda(x) for x, lent in zip(hosts, is_lent)]
    fits = [LAYOUTS[layout][1] or min(x.shape) < 2 for x, layout in zip(hosts, layouts)]
    copies = wsgemm.explain(*hosts, beta=beta)["copies"] if all(fits) else "some"
    if copies and m and n:
        with pytest.raises(ValueError, match="BLAS cannot"):
            wsgemm.matmul(*arrays, beta=beta)
        np.testing.assert_array_equal(hosts[2], before)
    elif not copies:
        assert wsgemm.matmul(*arrays, beta=beta) is arrays[2]
        np.testing.assert_array_equal(hosts[2], hosts[0] @ hosts[1] + beta * before)
    for array in arrays:
        if isinstance(array, Lent):
            assert array.log == ["deleted"] * len(array.capsules)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [name for name, (_, is_free) in STACK_LAYOUTS.items() if is_free])
def test_stacks(gpu, layout, dtype, rng):  # noqa: F811
    for shapes in (
        ((4, 5, 6), (4, 6, 7)),
        ((4, 5, 6), (6, 7)),
        ((5, 6), (4, 6, 7)),
        ((2, 1, 5, 6), (3, 6, 7)),
        ((2, 5, 6), (1, 6, 7)),
    ):
        a, b = (arrange(integer_array(rng, shape, dtype), layout) for shape in shapes)
        out = zeros(*np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]), 5, 7, dtype=dtype)
        wsgemm.matmul(Cuda(a), Cuda(b), Cuda(out))
        np.testing.assert_array_equal(out, a @ b)


def test_a_stack_takes_one_call(gpu, rng):  # noqa: F811
    a, b = integer_array(rng, (9, 3, 4), "float32"), integer_array(rng, (9, 4, 5), "float32")
    wsgemm.matmul(Cuda(a), Cuda(b), Cuda(zeros(9, 3, 5, dtype="float32")))
    (desc,) = gpu.descs
    assert (desc.batch_count, desc.stride_a, desc.stride_b, desc.stride_c) == (9, 12, 20, 15)


def test_a_stack_backwards_takes_one_call(gpu, rng):  # noqa: F811
    a, b = integer_array(rng, (9, 3, 4), "float32"), integer_array(rng, (9, 4, 5), "float32")
    for x, y in ((a[::-1], b), (a, b[::-1]), (a[::-1], b[::-1])):
        for step in (1, -1):
            out = zeros(9, 3, 5, dtype="float32")[::step]
            wsgemm.matmul(Cuda(x), Cuda(y), Cuda(out))
            np.testing.assert_array_equal(out, x @ y)
            (desc,) = gpu.descs
            assert desc.batch_count == 9 and desc.stride_c == 15
            assert (desc.stride_a, desc.stride_b) == (step * x.strides[0] // 4, step * y.strides[0] // 4)
            gpu.descs.clear()


@pytest.mark.parametrize("shape_a, shape_b", [((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((6, 3, 4), (4,)), ((4,), (6, 4, 5))])
def test_vectors(gpu, torch, shape_a, shape_b, rng):  # noqa: F811
    a, b = integer_array(rng, shape_a, "float64"), integer_array(rng, shape_b, "float64")
    expected = a @ b
    result = wsgemm.matmul(Tensor(a), Tensor(b))
    assert result.array.shape == np.shape(expected)
    np.testing.assert_array_equal(result.array, expected)
    wide = zeros(*np.shape(expected), 2)
    wsgemm.matmul(Tensor(a), Tensor(b), Tensor(wide[..., 1]))
    np.testing.assert_array_equal(wide[..., 1], expected)
    assert not wide[..., 0].any()


def test_nothing_to_do_and_nothing_to_sum(gpu):  # noqa: F811
    for shape_a, shape_b in (((0, 4), (4, 5)), ((3, 4), (4, 0)), ((0, 3, 4), (4, 5)), ((0, 0), (0, 0))):
        out = Cuda(zeros(*np.matmul(zeros(*shape_a), zeros(*shape_b)).shape))
        wsgemm.matmul(Cuda(zeros(*shape_a), data=(0, True)), Lent(zeros(*shape_b)), out)
    assert not gpu.log
    out = np.full((3, 5), 3.0)
    gpu.device_of = lambda address: 0 if address == out.ctypes.data else -1
    wsgemm.matmul(Cuda(zeros(3, 0), data=(0, False)), Cuda(zeros(0, 5), data=(0, False)), Cuda(out), beta=2)
    assert (out == 6).all() and len(gpu.descs) == 1


def test_interface_of_c_order_has_no_strides(gpu, rng):  # noqa: F811
    a, out = integer_array(rng, (3, 3), "float32"), zeros(3, 3, dtype="float32")
    for strides in (None, (12, 4)):
        wsgemm.matmul(Cuda(a, strides=strides), Cuda(a, strides=strides), Cuda(out, strides=strides))
        np.testing.assert_array_equal(out, a @ a)


# ---- Streams -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys, stream",
    [({"stream": 7}, 7), ({"stream": 1}, 1), ({"stream": 2}, 2), ({"stream": None}, 1), ({"stream": 7, "version": 2}, 1)],
)
def test_stream_of_the_interface(gpu, keys, stream):  # noqa: F811
    wsgemm.matmul(Cuda(zeros(2, 2), **keys), Cuda(zeros(2, 2), **keys), Cuda(zeros(2, 2), **keys))
    assert gpu.log == [("gemm", stream)]


def test_stream_zero_may_mean_two(gpu):  # noqa: F811
    with pytest.raises(ValueError, match="b.*stream 0"):
        wsgemm.matmul(Cuda(zeros(2, 2)), Cuda(zeros(2, 2), stream=0), Cuda(zeros(2, 2)))
    assert not gpu.log


def test_current_stream_of_the_library(gpu, torch, cupy):  # noqa: F811
    wsgemm.matmul(Tensor(zeros(2, 2)), Tensor(zeros(2, 2)))
    wsgemm.matmul(ndarray(zeros(2, 2)), ndarray(zeros(2, 2)))
    sys.modules["torch"] = fake_torch(stream=0)
    wsgemm.matmul(Tensor(zeros(2, 2)), Tensor(zeros(2, 2)))
    assert gpu.log == [("gemm", 5), ("gemm", 6), ("gemm", 1)]


def test_streams_of_several_libraries_wait_for_each_other(gpu, torch, cupy):  # noqa: F811
    # The result's library lends the stream.
    wsgemm.matmul(Tensor(zeros(2, 2)), ndarray(zeros(2, 2)))
    assert gpu.log == [("order", 6, 5), ("gemm", 5), ("order", 5, 6)]
    gpu.log.clear()
    wsgemm.matmul(Tensor(zeros(2, 2)), Tensor(zeros(2, 2)), out=ndarray(zeros(2, 2)))
    assert gpu.log == [("order", 5, 6), ("gemm", 6), ("order", 6, 5)]
    gpu.log.clear()
    wsgemm.matmul(Cuda(zeros(2, 2), stream=9), Cuda(zeros(2, 2), stream=None), out=Cuda(zeros(2, 2), stream=8))
    # Nothing said is the default stream.
    assert gpu.log == [("order", 1, 8), ("order", 9, 8), ("gemm", 8), ("order", 8, 1), ("order", 8, 9)]
    gpu.log.clear()
    wsgemm.matmul(Tensor(zeros(2, 2)), Tensor(zeros(2, 2)), out=Cuda(zeros(2, 2), stream=None))
    assert gpu.log == [("order", 5, 1), ("gemm", 1), ("order", 1, 5)]


def test_failing_call_leaves_the_streams_ordered(gpu, torch, cupy):  # noqa: F811
    gpu.on_gemm = lambda handle: 11
    with pytest.raises(wsgemm.WsgemmError) as caught:
        wsgemm.matmul(Tensor(zeros(2, 2)), ndarray(zeros(2, 2)))
    assert caught.value.status == _lib.Status.DEVICE_ERROR
    assert gpu.log == [("order", 6, 5), ("gemm", 5), ("order", 5, 6)]


def test_settings_of_the_handle_are_taken_along(gpu):  # noqa: F811
    library = _lib.library
    row = next(row.name for row in map(wsgemm.kernel_info, wsgemm.kernels()) if row.type == "d" and row.family == "ref")
    handle = wsgemm.Handle(policy="fixed_blocks", coarse_factor=3, kernel=row, math="pedantic")
    seen = []

    def look(pointer):
        value = ctypes.c_int()
        numbers = []
        for name in ("policy", "coarse_factor", "math"):
            assert getattr(library, "wsgemm_get_" + name)(pointer, ctypes.byref(value)) == 0
            numbers.append(value.value)
        seen.append((pointer, numbers, _lib.text(library.wsgemm_explain, pointer, bytes(gpu.descs[-1]))["kernel"]))
        return 0

    gpu.on_gemm = look
    arrays = [Cuda(zeros(40, 40), stream=3) for _ in range(3)]
    wsgemm.matmul(*arrays, handle=handle)
    wsgemm.matmul(*arrays)
    (own, numbers, kernel), (other, defaults, kernel_by_default) = seen
    assert numbers == [_lib.Policy.POLICY_FIXED_BLOCKS, 3, _lib.Math.MATH_PEDANTIC] and kernel == row
    assert defaults == [_lib.Policy.POLICY_AUTO, 0, _lib.Math.MATH_DEFAULT] and kernel_by_default != row
    assert own != handle.pointer and other is not None and stream_of(handle.pointer) is None and stream_of(None) is None


def test_a_call_inside_a_call_has_its_own_stream(gpu):  # noqa: F811
    # As a signal handler would: the outer call has set its stream, the inner one must not change it.
    def interrupt(pointer):
        gpu.on_gemm = lambda handle: 0
        wsgemm.matmul(*[Cuda(zeros(2, 2), stream=4)] * 2, Cuda(zeros(2, 2), stream=4))
        assert stream_of(pointer) == 3
        return 0

    gpu.on_gemm = interrupt
    wsgemm.matmul(*[Cuda(zeros(2, 2), stream=3)] * 2, Cuda(zeros(2, 2), stream=3))
    assert gpu.log == [("gemm", 3), ("gemm", 4)] and gpu.handles[0] != gpu.handles[1]


def test_threads_keep_their_streams(gpu):  # noqa: F811
    barrier = threading.Barrier(4)
    failures = []

    def work(stream):
        out = zeros(3, 3)
        for _ in range(50):
            wsgemm.matmul(*[Cuda(np.eye(3) * stream, stream=stream)] * 2, Cuda(out, stream=stream))
            if not (out == np.eye(3) * stream**2).all():
                failures.append(stream)

    def check(pointer):
        before = stream_of(pointer)
        try:
            barrier.wait(0.01)  # all four are inside their calls now, if they can be
        except threading.BrokenBarrierError:
            barrier.reset()
        if stream_of(pointer) != before:
            failures.append(before)
        return 0

    gpu.on_gemm = check
    threads = [threading.Thread(target=work, args=(stream,)) for stream in range(3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(stream for _, stream in gpu.log) == sorted([3, 4, 5, 6] * 50)


# ---- torch, cupy, jax ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [Tensor, ndarray, Array])
def test_result_is_of_the_same_library(gpu, torch, cupy, jax, array, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "complex64"), integer_array(rng, (4, 5), "complex64")
    for result in (wsgemm.matmul(array(a), array(b)), wsgemm.gemm(1, array(a), array(b)), wsgemm.cgemm(1, array(a), array(b))):
        assert type(result) is array
        np.testing.assert_array_equal(result.array, a @ b)
    c = integer_array(rng, (3, 5), "complex64")
    before = c.copy()
    result = wsgemm.gemm(1j, array(a), array(b), 2, array(c))
    np.testing.assert_array_equal(result.array, 1j * (a @ b) + 2 * before)
    np.testing.assert_array_equal(c, before)


@pytest.mark.parametrize("array", [Tensor, ndarray])
def test_library_copies_what_blas_cannot_read(gpu, torch, cupy, array, rng):  # noqa: F811
    wide = integer_array(rng, (12, 12), "float64")
    a, b = wide[:, ::2], wide[::2, ::3]
    np.testing.assert_array_equal(wsgemm.matmul(array(a), array(b)).array, a @ b)
    square = wide.copy()
    wsgemm.matmul(array(square), array(square.T), array(square))
    np.testing.assert_array_equal(square, wide @ wide.T)
    with pytest.raises(ValueError, match="out.*BLAS cannot write"):
        wsgemm.matmul(array(wide[:4, :4].copy()), array(wide[:4, :4].copy()), array(square[:8:2, :8:2]))
    with pytest.raises(ValueError, match="out.*BLAS cannot write"):
        wsgemm.matmul(array(wide), array(wide), array(np.lib.stride_tricks.as_strided(square, (12, 12), (0, 8))))


def test_copies_live_until_the_call(gpu, torch, rng, monkeypatch):  # noqa: F811
    made = []
    clone = Tensor.clone
    monkeypatch.setattr(Tensor, "clone", lambda x, **more: [y := clone(x, **more), made.append(weakref.ref(y))][0])
    gpu.on_gemm = lambda handle: None in [x() for x in made] and 12
    wide = integer_array(rng, (12, 12), "float64")
    wsgemm.matmul(Tensor(wide[:, ::2]), Tensor(wide[::2, ::3]))
    assert len(made) == 2
    gc.collect()
    assert [x() for x in made] == [None, None]  # and no longer


def test_out_that_overlaps_itself(gpu):  # noqa: F811
    stack = np.lib.stride_tricks.as_strided(zeros(16), (3, 4, 4), (8, 32, 8))
    with pytest.raises(ValueError, match="out.*BLAS cannot write"):
        wsgemm.matmul(Cuda(zeros(3, 4, 4)), Cuda(zeros(4, 4)), Cuda(stack))
    assert not gpu.log


def test_explain(gpu, torch, rng):  # noqa: F811
    x, wide = Tensor(zeros(6, 6)), Tensor(zeros(6, 12)[:, ::2])
    told = wsgemm.explain(x, x)
    assert told["calls"] == "1" and told["copies"] == "" and told["problem"].startswith("dgemm nn m=6 n=6 k=6")
    assert wsgemm.explain(wide, x)["copies"] == "a" and wsgemm.explain(x, x, x)["copies"] == "a, b"
    assert wsgemm.explain(Tensor(zeros(2, 3, 2, 6)), Tensor(zeros(3, 6, 5)))["calls"] == "2"
    assert wsgemm.explain(Tensor(zeros(0, 6)), x) == {"calls": "0", "copies": ""}
    assert wsgemm.explain(Tensor(zeros(6)), x, Tensor(zeros(6)), beta=1)["problem"].startswith("dgemm nn m=1 n=6 k=6")
    for arguments, keywords, exception, word in (
        ((x, zeros(6, 6)), {}, TypeError, "b lies in host memory"),
        ((x, x), {"beta": 1}, ValueError, "needs out"),
        ((x, x, Tensor(zeros(5, 6))), {}, ValueError, "out has shape"),
        ((x, x, wide), {}, ValueError, "BLAS cannot write"),
    ):
        with pytest.raises(exception, match=word):
            wsgemm.explain(*arguments, **keywords)
    assert not gpu.log


def test_conjugated_tensors(gpu, torch, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "complex64"), integer_array(rng, (4, 5), "complex64")
    lazy = Tensor(a)
    lazy.conjugated = True
    np.testing.assert_array_equal(wsgemm.matmul(lazy, Tensor(b)).array, a.conj() @ b)
    assert gpu.descs.pop().transa == C
    adjoint = Tensor(b.T)
    adjoint.conjugated = True
    np.testing.assert_array_equal(wsgemm.matmul(adjoint, Tensor(a.T.copy())).array, b.conj().T @ a.T)
    assert gpu.descs.pop().transa == CT
    np.testing.assert_array_equal(wsgemm.gemm(1, lazy, Tensor(a), trans_a=2).array, a.T @ a)  # twice is not at all
    for word in ("conjugated", "negated"):
        out = Tensor(zeros(3, 5, dtype="complex64"))
        setattr(out, word, True)
        with pytest.raises(TypeError, match="out is a conjugated or negated"):
            wsgemm.matmul(Tensor(a), Tensor(b), out)
    negative = Tensor(a)
    negative.negated = True
    np.testing.assert_array_equal(wsgemm.matmul(negative, Tensor(b)).array, -a @ b)


def test_gradients_are_not_lost_in_silence(gpu, torch, rng):  # noqa: F811
    weight, x = Tensor(integer_array(rng, (3, 3), "float32")), Tensor(integer_array(rng, (3, 3), "float32"))
    weight.requires_grad = True
    with pytest.raises(TypeError, match=r"b requires a gradient.*b\.detach\(\)"):
        wsgemm.matmul(x, weight)
    sys.modules["torch"] = fake_torch(is_grad_enabled=False)
    np.testing.assert_array_equal(wsgemm.matmul(x, weight).array, x.array @ weight.array)
    expected = x.array @ x.array
    assert wsgemm.matmul(x, x, weight) is weight
    np.testing.assert_array_equal(weight.array, expected)


def test_torch_is_told_of_the_write(gpu, torch):  # noqa: F811
    out = Tensor(zeros(2, 2))
    wsgemm.matmul(Tensor(zeros(2, 2)), Tensor(zeros(2, 2)), out)
    assert out.n_written == 1


def test_jax_waits_and_gives_back(gpu, jax, rng):  # noqa: F811
    a, b = integer_array(rng, (3, 4), "float64"), integer_array(rng, (4, 5), "float64")
    result = wsgemm.matmul(Array(a, log=gpu.log), Array(b, log=gpu.log))
    np.testing.assert_array_equal(result.array, a @ b)
    assert gpu.log == [("gemm", 1), ("wait", 1), "deleted", "deleted", "deleted"]
    with pytest.raises(ValueError, match="out is a .*Array, which cannot be written"):
        wsgemm.matmul(Array(a), Array(b), out=result)


def test_other_libraries_make_no_arrays(gpu):  # noqa: F811
    with pytest.raises(TypeError, match="wsgemm_fakes.Cuda.*wsgemm_fakes.Lent.*pass one to write to"):
        wsgemm.matmul(Cuda(zeros(2, 2)), Lent(zeros(2, 2)))
    with pytest.raises(ValueError, match="a may share memory.*contiguous copy"):
        square = Cuda(zeros(2, 2))
        wsgemm.matmul(square, Cuda(zeros(2, 2)), square)
    assert not gpu.log


# ---- gemm ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_a", [0, 1, 2])
@pytest.mark.parametrize("trans_b", [0, 1, 2])
def test_gemm(gpu, dtype, trans_a, trans_b, rng):  # noqa: F811
    op = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}
    a, b = integer_array(rng, (4, 3) if trans_a else (3, 4), dtype), integer_array(rng, (5, 4) if trans_b else (4, 5), dtype)
    c = integer_array(rng, (3, 5), dtype)
    before = c.copy()
    target = Cuda(c)
    assert wsgemm.gemm(2, Cuda(a), Lent(b), -1, target, trans_a, trans_b, overwrite_c=1) is target
    np.testing.assert_array_equal(c, 2 * (op[trans_a](a) @ op[trans_b](b)) - before)


def test_gemm_refuses(gpu, torch):  # noqa: F811
    x = Tensor(zeros(2, 3, dtype="float32"))
    with pytest.raises(TypeError, match="dgemm takes float64, but a is float32"):
        wsgemm.dgemm(1, x, x)
    with pytest.raises(ValueError, match="trans_a is 3"):
        wsgemm.gemm(1, x, x, trans_a=3)
    with pytest.raises(ValueError, match="op.a. has shape .2, 3."):
        wsgemm.gemm(1, x, x)
    with pytest.raises(ValueError, match="beta = 1 needs c"):
        wsgemm.gemm(1, x, x, 1, trans_b=1)
    with pytest.raises(TypeError, match="c lies in host memory"):
        wsgemm.gemm(1, x, x, 1, zeros(2, 2, dtype="float32"), trans_b=1)
    assert not gpu.log


@pytest.mark.parametrize("array", [Tensor, Cuda])
@pytest.mark.parametrize("put", [Cuda, Lent])
def test_c_of_libraries_that_make_no_copies(gpu, torch, array, put):  # noqa: F811
    x, c = array(zeros(2, 2)), zeros(2, 2)
    with pytest.raises(TypeError, match=f"c is a wsgemm_fakes.{put.__name__}, of a library .* copy .*overwrite_c=1"):
        wsgemm.gemm(1, x, x, 2, put(c))
    assert not gpu.log
    given = put(c)
    assert wsgemm.gemm(1, x, x, 2, given, overwrite_c=1) is given


# ---- Refused -------------------------------------------------------------------------------------------------------------

F32 = np.ones((3, 4), "float32")
SQUARE = np.ones((4, 4), "float32")
OUT = np.ones((3, 4), "float32")
BAD = [
    (
        (Cuda(F32), SQUARE),
        {},
        TypeError,
        ["a lies on a GPU (wsgemm_fakes.Cuda)", "b lies in host memory (numpy.ndarray)", "together"],
    ),
    ((F32, Lent(SQUARE)), {}, TypeError, ["a lies in host memory", "b lies on a GPU (wsgemm_fakes.Lent)"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": F32}, TypeError, ["a lies on a GPU", "b lies on a GPU", "out lies in host memory"]),
    ((F32, SQUARE), {"out": Cuda(OUT)}, TypeError, ["a lies in host memory", "out lies on a GPU"]),
    (([[1.0]], Cuda(SQUARE)), {}, TypeError, ["a lies in host memory (builtins.list)"]),
    ((Lent(F32, told_device=1), Cuda(SQUARE)), {}, TypeError, ["a lies in host memory (wsgemm_fakes.Lent)"]),
    ((Cuda(F32), Cuda(SQUARE, mask=Cuda(SQUARE))), {"out": Cuda(OUT)}, TypeError, ["b is a masked array"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Cuda(F32, readonly=True)}, ValueError, ["out is read-only"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Lent(F32, (1, 0), flags=1)}, ValueError, ["out is read-only"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Lent(F32, (1, 0), flags=2)}, ValueError, ["out is read-only"]),
    ((Cuda(F32), Cuda(SQUARE.astype("f8"))), {"out": Cuda(OUT)}, TypeError, ["a is float32", "b is float64"]),
    ((Cuda(F32.astype("f2")), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is float16", "b is float32", "one type"]),
    ((Cuda(F32.astype(">f4")), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is float32 in swapped byte order"]),
    ((Lent(F32, dtype=(4, 16, 1)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is bfloat16", "b is float32", "one type"]),
    ((Lent(F32, dtype=(1, 16, 1)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is uint16", "float16", "bfloat16"]),
    ((Lent(F32, dtype=(0, 16, 1)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is int16", "float16, bfloat16, float32"]),
    ((Lent(F32, dtype=(4, 32, 1)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is bfloat32", "float16, bfloat16"]),
    ((Lent(F32, dtype=(4, 16, 2)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is bfloat16 x 2", "float16, bfloat16"]),
    ((Lent(F32, dtype=(2, 32, 4)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is float32 x 4"]),
    ((Lent(F32, dtype=(9, 8, 1)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a is DLPack type 9 of 8"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Cuda(OUT.astype("f8"))}, TypeError, ["out is float64", "a and b are float32"]),
    ((Cuda(F32), Cuda(F32)), {"out": Cuda(OUT)}, ValueError, ["(3, 4)", "4 columns of a", "3 rows of b"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Cuda(SQUARE)}, ValueError, ["out has shape (4, 4)", "a @ b has shape (3, 4)"]),
    ((Cuda(F32), Cuda(np.array(1, "float32"))), {"out": Cuda(OUT)}, ValueError, ["()", "at least one dimension"]),
    ((Cuda(F32), Cuda(SQUARE)), {"beta": 1}, ValueError, ["beta = 1 needs out"]),
    ((Cuda(F32), Cuda(SQUARE)), {"out": Cuda(OUT), "alpha": 1j}, TypeError, ["alpha is complex", "float32"]),
    ((Cuda(F32[::-1]), Cuda(SQUARE)), {"out": Cuda(OUT)}, ValueError, ["a has shape (3, 4) and strides (-4, 1)", "contiguous"]),
    (
        (Cuda(F32), Cuda(SQUARE[:, ::-1])),
        {"out": Cuda(OUT)},
        ValueError,
        ["b has shape (4, 4) and strides (4, -1)", "contiguous"],
    ),
    ((Cuda(F32, strides=(17, 4)), Cuda(SQUARE)), {"out": Cuda(OUT)}, ValueError, ["a has shape (3, 4) and strides None"]),
    (
        (Cuda(F32, strides=(4,)), Cuda(SQUARE)),
        {"out": Cuda(OUT)},
        TypeError,
        ["a.__cuda_array_interface__ makes no sense", "(4,)"],
    ),
    ((Cuda(F32, typestr="?!"), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, typestr="|V0"), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a "]),
    ((Cuda(F32, data=None), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, shape=(-3, 4)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, shape=(3.5, 4)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, strides=(16.0, 4)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, data=(1.5, False)), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, version="3"), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, stream="x"), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, stream=2**64), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
    ((Cuda(F32, stream=-1), Cuda(SQUARE)), {"out": Cuda(OUT)}, TypeError, ["a.__cuda_array_interface__ makes no sense"]),
]

FAR = 1 << 64
BEYOND = [
    # of a, b and out: what their interfaces say
    ({"shape": (FAR, 4)}, {}, {"shape": (FAR, 4)}, "a has shape (18446744073709551616, 4) of float32"),
    ({"shape": (2**61, 4)}, {}, {"shape": (2**61, 4)}, "a has shape (2305843009213693952, 4) of float32"),
    ({"shape": (3, FAR)}, {"shape": (FAR, 4)}, {}, "a has shape (3, 18446744073709551616) of float32"),
    ({"shape": (FAR, 3, 4), "strides": (0, 16, 4)}, {}, {}, "a has shape (18446744073709551616, 3, 4) of float32"),
    ({}, {}, {"shape": (2**40, 2**40)}, "out has shape (1099511627776, 1099511627776) of float32"),
    ({"strides": (2**70, 4)}, {}, {}, "a lies at 0x"),
    ({"strides": (2**62, 4)}, {}, {}, "a lies at 0x"),
    ({}, {"shape": (4, 1), "strides": (4, 2**70)}, {"shape": (3, 1)}, "b lies at 0x"),
    ({"data": (FAR, False)}, {}, {}, "a lies at 0x10000000000000000"),
    ({"data": (FAR - 16, False)}, {}, {}, "a lies at 0xfffffffffffffff0"),
    ({"data": (-8, False)}, {}, {}, "a lies at -0x8"),
    ({"data": (16, False), "strides": (-16, 4)}, {}, {}, "a lies at 0x10"),
    ({"shape": (0, 4), "data": (FAR, False)}, {}, {"shape": (0, 4)}, "a lies at 0x10000000000000000"),
]


@pytest.mark.parametrize("says_a, says_b, says_out, words", BEYOND)
def test_arrays_beyond_all_memory(gpu, says_a, says_b, says_out, words):  # noqa: F811
    a, b, out = Cuda(F32, **says_a), Cuda(SQUARE, **says_b), Cuda(OUT, **says_out)
    functions = [wsgemm.matmul, wsgemm.explain, wsgemm.workspace_size]
    if says_a and len(a.__cuda_array_interface__["shape"]) == 2:
        functions += [lambda a, b, out: wsgemm.gemm(1, a, b, 0, out, overwrite_c=1)]
    for function in functions:
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            function(a, b, out)
        assert "memory" in str(caught.value)
    if says_a:
        with pytest.raises(ValueError, match=re.escape(words[1:])):
            wsgemm.packed_size(a)
    assert not gpu.log


def test_results_beyond_all_memory(gpu, torch):  # noqa: F811
    tall, wide = Cuda(F32, shape=(2**40, 2), strides=(8, 4)), Cuda(F32, shape=(2, 2**40))
    stack = Cuda(F32, shape=(2**30, 2**20, 2), strides=(0, 8, 4))
    for function in (wsgemm.matmul, wsgemm.workspace_size, wsgemm.explain):
        for a in (tall, stack):
            with pytest.raises(ValueError, match="the result has shape .* of float32.*more than all memory"):
                function(a, wide)
    with pytest.raises(ValueError, match="the result has shape .1099511627776, 1099511627776. of float32"):
        wsgemm.gemm(1, tall, wide)
    assert not gpu.log


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_lent_tensors_beyond_all_memory(gpu, version):  # noqa: F811
    class Far(Lent):
        def _fill(self, tensor):
            kept = super()._fill(tensor)
            for i, size in enumerate(self.sizes):
                tensor.shape[i] = size
            return kept

    a = Far(F32, version)
    for a.sizes, error, words in (
        ((2**61, 4), ValueError, "a has shape .2305843009213693952, 4. of float32"),
        ((-3, 4), TypeError, "a.__dlpack__.. makes no sense: shape .-3, 4."),
    ):
        with pytest.raises(error, match=words):
            wsgemm.matmul(a, Cuda(SQUARE), Cuda(OUT))
    assert a.log == ["deleted"] * 2 and not gpu.log


@pytest.mark.parametrize("arguments, keywords, exception, words", BAD)
def test_bad_arguments(gpu, arguments, keywords, exception, words):  # noqa: F811
    with pytest.raises(exception) as caught:
        wsgemm.matmul(*arguments, **keywords)
    assert type(caught.value) is exception
    for word in words:
        assert word in str(caught.value)
    assert not gpu.log
    for x in arguments:
        if isinstance(x, Lent):
            assert x.log == ["deleted"] * len(x.capsules)


def test_addresses_are_checked(gpu):  # noqa: F811
    a, b, out = (zeros(2, 2) for _ in range(3))
    gpu.device_of = lambda address: -1 if address == b.ctypes.data else 0
    with pytest.raises(wsgemm.WsgemmError, match=f"b is said to lie at {b.ctypes.data:#x}") as caught:
        wsgemm.matmul(Cuda(a), Cuda(b), Cuda(out))
    assert caught.value.status == _lib.Status.INVALID_POINTER
    gpu.device_of = lambda address: 1 if address == a.ctypes.data else 0
    with pytest.raises(ValueError, match="a lies on GPU 1, b lies on GPU 0"):
        wsgemm.matmul(Cuda(a), Cuda(b), Cuda(out))
    assert not gpu.log


def test_without_a_gpu_it_is_said_so():
    if wsgemm.machine().get("gpu", "").startswith("driver found"):
        pytest.skip("this machine has a GPU driver")
    with pytest.raises(wsgemm.WsgemmError, match="no driver|too old|no GPU backend") as caught:
        wsgemm.matmul(Cuda(zeros(2, 2)), Cuda(zeros(2, 2)), Cuda(zeros(2, 2)))
    assert caught.value.status in (_lib.Status.NOT_SUPPORTED, _lib.Status.INSUFFICIENT_DRIVER)


def test_a_build_without_gpu_backend_is_told_from_one_without_driver(monkeypatch):
    texts = {"config": {"backends": "cpu"}, "machine": {}}
    library = _lib.library
    monkeypatch.setattr(_lib, "text", lambda asks: texts["config" if asks is library.wsgemm_config else "machine"])
    for config, gpu_state, status in (
        ("cpu", None, _lib.Status.NOT_SUPPORTED),
        ("cpu cuda", "no driver", _lib.Status.INSUFFICIENT_DRIVER),
        ("cpu cuda", "the driver is too old: it has no cuX", _lib.Status.INSUFFICIENT_DRIVER),
    ):
        _streams.require_gpu_backend.cache_clear()
        texts.update(config={"backends": config}, machine={"gpu": gpu_state} if gpu_state else {})
        with pytest.raises(wsgemm.WsgemmError) as caught:
            _streams.require_gpu_backend()
        assert caught.value.status == status and (gpu_state or "nvcc") in str(caught.value)
    texts.update(machine={"gpu": "driver found; used for device memory"})
    _streams.require_gpu_backend()
    _streams.require_gpu_backend.cache_clear()
