"""Workspaces, as far as no device is needed: what C handles get and lose, what is refused, and what is asked of which product."""

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib
from wsgemm_fakes import (  # noqa: F401
    Array,
    Cuda,
    Lent,
    Tensor,
    aligned,
    faked_cupy,
    faked_jax,
    faked_torch,
    gpu,
    ndarray,
    workspace_bytes,
    zeros,
)
from wsgemm_reference import integer_array

NONE = (None, 0)


@pytest.fixture
def rng():
    return np.random.default_rng(67)


def arrays(dtype="float32", stream=3):
    return [Cuda(zeros(4, 4, dtype=dtype), stream=stream) for _ in range(3)]


# ---- Handles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("put", [Cuda, Tensor, ndarray, Lent])
@pytest.mark.parametrize("dtype", ["uint8", "complex64"])
def test_arrays_of_any_type_and_library(gpu, torch, cupy, put, dtype):  # noqa: F811
    memory = put(aligned(1024, dtype).reshape(2, -1))
    handle = wsgemm.Handle(workspace=memory)
    assert handle.workspace is memory and "workspace=1024 bytes" in repr(handle)
    assert gpu.workspaces == {handle.pointer: (memory.array.ctypes.data, 1024)}
    if put is Lent:
        assert memory.log == ["deleted"]
    handle.workspace = None
    assert handle.workspace is None and gpu.workspaces == {handle.pointer: NONE} and "workspace" not in repr(handle)
    assert not gpu.log


def test_an_empty_array_is_no_workspace(gpu):  # noqa: F811
    memory = Cuda(aligned(1024)[:0])
    handle = wsgemm.Handle(workspace=memory)
    assert handle.workspace is memory and gpu.workspaces == {handle.pointer: NONE}
    wsgemm.matmul(*arrays(), handle=handle)
    assert gpu.workspaces.pop(gpu.handles[0]) == NONE


@pytest.mark.parametrize(
    "workspace, error, words",
    [
        (aligned(512), TypeError, "workspace lies in host memory .numpy.ndarray."),
        (Cuda(aligned(512), readonly=True), ValueError, "workspace is read-only"),
        (Lent(aligned(512), (1, 0), flags=2), ValueError, "workspace is read-only"),
        (Array(aligned(512)), ValueError, "workspace is a wsgemm_fakes.Array, which cannot be written"),
        (Cuda(aligned(512)[::2]), ValueError, r"workspace has shape .256,. and strides .2,.; pass a contiguous array"),
        (Cuda(aligned(512)[1:]), wsgemm.WsgemmError, "WSGEMM_INVALID_VALUE"),
    ],
)
def test_bad_workspaces(gpu, jax, workspace, error, words):  # noqa: F811
    with pytest.raises(error, match=words):
        wsgemm.Handle(workspace=workspace)
    good = Cuda(aligned(512))
    handle = wsgemm.Handle(workspace=good)
    with pytest.raises(error, match=words):
        handle.workspace = workspace
    assert handle.workspace is good and gpu.workspaces[handle.pointer] == (good.array.ctypes.data, 512)


def test_memory_that_is_no_gpu_s(gpu):  # noqa: F811
    gpu.device_of = lambda address: -1
    with pytest.raises(wsgemm.WsgemmError) as caught:
        wsgemm.Handle(workspace=Cuda(aligned(512)))
    assert caught.value.status == wsgemm.Status.INVALID_POINTER


def test_without_a_gpu():
    if "cuda" in wsgemm.config()["backends"].split():
        pytest.skip("this build has a GPU backend")
    for function in (lambda: wsgemm.Handle(workspace=Cuda(aligned(512))), lambda: wsgemm.workspace_size(*arrays())):
        with pytest.raises(wsgemm.WsgemmError) as caught:
            function()
        assert caught.value.status == wsgemm.Status.NOT_SUPPORTED


# ---- Calls ---------------------------------------------------------------------------------------------------------------


def test_calls_have_the_workspace_of_their_handle(gpu, torch):  # noqa: F811
    memory, seen = Cuda(aligned(1024)), []
    handle, other = wsgemm.Handle(workspace=memory), wsgemm.Handle()
    there = (memory.array.ctypes.data, 1024)
    gpu.on_gemm = lambda pointer: seen.append(gpu.workspaces.get(pointer, NONE)) or 0
    x = Tensor(zeros(4, 4, dtype="float32"))
    wsgemm.matmul(*arrays(), handle=handle)
    wsgemm.matmul(*arrays(), handle=other)
    wsgemm.matmul(*arrays())
    wsgemm.gemm(1, x, x, handle=handle)
    wsgemm.matmul(x, x, activation="relu", handle=handle)
    assert seen == [there, NONE, NONE, there, there]
    seen.clear()
    wsgemm.default_handle.workspace = memory
    try:
        assert gpu.workspaces[None] == there and "default_handle" in repr(wsgemm.default_handle)
        wsgemm.matmul(*arrays())
        wsgemm.matmul(*arrays(), handle=other)
    finally:
        wsgemm.default_handle.workspace = None
    wsgemm.matmul(*arrays())
    assert seen == [there, NONE, NONE] and gpu.workspaces[None] == NONE
    assert gpu.workspaces[handle.pointer] == there


@pytest.mark.parametrize("failure", [0, 11, KeyboardInterrupt])
def test_memory_is_kept_no_longer_than_it_is_set(gpu, failure):  # noqa: F811
    def fail(pointer):
        if failure in (0, 11):
            return failure
        raise failure

    memory = Cuda(aligned(1024))
    handle, kept = wsgemm.Handle(workspace=memory), weakref.ref(memory)
    gpu.on_gemm = fail
    with contextlib.suppress(wsgemm.WsgemmError, KeyboardInterrupt):
        wsgemm.matmul(*arrays(), handle=handle)
    del memory
    assert kept() is not None
    handle.workspace = None
    gc.collect()
    assert kept() is None
    gpu.on_gemm = lambda pointer: 0
    wsgemm.matmul(*arrays(), handle=handle)
    assert gpu.workspaces[gpu.handles[-1]] == NONE


def test_memory_that_went_bad(gpu):  # noqa: F811
    handle = wsgemm.Handle(workspace=Cuda(aligned(1024)))
    gpu.device_of = lambda address: -1 if address == handle.workspace.array.ctypes.data else 0
    with pytest.raises(wsgemm.WsgemmError):
        wsgemm.matmul(*arrays(), handle=handle)
    assert not gpu.log
    wsgemm.matmul(*arrays())
    assert gpu.workspaces.get(gpu.handles[0], NONE) == NONE


def test_arrays_are_kept_and_let_go(gpu):  # noqa: F811
    memory = Cuda(aligned(1024))
    alive = weakref.ref(memory)
    handle = wsgemm.Handle(workspace=memory)
    del memory
    gc.collect()
    assert alive() is not None

    def let_go(pointer):
        handle.workspace = None
        gc.collect()
        assert alive() is not None and gpu.workspaces[pointer] == (alive().array.ctypes.data, 1024)  # the call has it
        return 0

    gpu.on_gemm = let_go
    wsgemm.matmul(*arrays(), handle=handle)
    gc.collect()
    assert alive() is None
    handle.workspace = Cuda(aligned(1024))
    alive = weakref.ref(handle.workspace)
    handle.workspace = Cuda(aligned(512))
    gc.collect()
    assert alive() is None
    alive = weakref.ref(handle.workspace)
    handle = None
    gc.collect()
    assert alive() is None


def test_calls_never_see_half_of_a_workspace(gpu):  # noqa: F811
    memories = [Cuda(aligned(256 * n)) for n in range(1, 4)]
    known = {(memory.array.ctypes.data, memory.array.nbytes) for memory in memories} | {NONE}
    handle, failures, is_done = wsgemm.Handle(), [], threading.Event()

    def check(pointer):
        before = gpu.workspaces.get(pointer, NONE)
        if before not in known:
            failures.append(before)
        return 0

    def change():
        while not is_done.is_set():
            for handle.workspace in (*memories, None):
                pass

    def multiply():
        for _ in range(100):
            wsgemm.matmul(*arrays(), handle=handle)

    gpu.on_gemm = check
    changer = threading.Thread(target=change)
    workers = [threading.Thread(target=multiply) for _ in range(3)]
    for thread in (changer, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    is_done.set()
    changer.join()
    assert not failures and len(gpu.log) == 300
    wsgemm.matmul(*arrays(), handle=handle)
    assert gpu.workspaces[gpu.handles[-1]] == NONE


# ---- Sizes ---------------------------------------------------------------------------------------------------------------


def test_size_of_a_product(gpu, torch):  # noqa: F811
    x, y, out = Tensor(zeros(3, 4)), Tensor(zeros(4, 5)), Tensor(zeros(3, 5))
    assert wsgemm.workspace_size(x, y) == wsgemm.workspace_size(x, y, out, 2, 1) == 32
    made, given = gpu.asked
    assert (made.m, made.n, made.k, made.lda, made.ldb, made.ldc) == (3, 5, 4, 4, 5, 5)
    assert (made.a, made.b, given.c) == (x.array.ctypes.data, y.array.ctypes.data, out.array.ctypes.data)
    # What is not made is said to lie in a's memory, but not where a does: on the same GPU.
    assert made.c // 256 == made.a // 256 and made.c % 128 == 0 and made.c != made.a
    assert made.struct_bytes == _lib.BASE_DESC_BYTES and given.beta.d == 1
    assert out.n_written == 0 and not gpu.log and not gpu.descs


@pytest.mark.parametrize("put", [Cuda, Lent, Array])
def test_size_for_results_that_others_make(gpu, jax, put):  # noqa: F811
    x = put(zeros(4, 4))
    assert wsgemm.workspace_size(x, x) == wsgemm.workspace_size(x, x, residual=x) == 32
    x = put(aligned(128, "float64").reshape(4, 4))
    assert wsgemm.workspace_size(x, x, residual=x) == 32
    assert not [entry for entry in gpu.log if entry != "deleted"]


def test_size_is_asked_of_what_matmul_would_do(gpu, torch, rng, monkeypatch):  # noqa: F811
    # But for addresses, of the same descriptors as the products', with copies and results that are not made.
    def plain(desc):
        places = ("a", "b", "c", "bias", "residual", "column_sums")
        fields = {name: getattr(desc, name) for name, _ in desc._fields_ if name not in ("alpha", "beta")}
        return {name: value is None if name in places else value for name, value in fields.items()}

    def ask(*arguments, **keywords):
        with monkeypatch.context() as patch:
            patch.setattr(Tensor, "clone", lambda x, **_more: pytest.fail("an array was made"))
            patch.setattr(torch, "empty", lambda *_, **_more: pytest.fail("an array was made"))
            n_bytes = wsgemm.workspace_size(*arguments, **keywords)
        assert not gpu.descs
        result = wsgemm.matmul(*arguments, **keywords)
        assert [plain(desc) for desc in gpu.asked] == [plain(desc) for desc in gpu.descs]
        assert n_bytes == max(map(workspace_bytes, gpu.descs))
        n_calls = len(gpu.descs)
        gpu.asked.clear()
        gpu.descs.clear()
        return result, n_calls

    def tensor(*shape, dtype="float32"):
        return Tensor(integer_array(rng, shape, dtype))

    wide, stack, square = tensor(8, 12), tensor(2, 3, 4, 6), tensor(6, 6)
    sums, out = Tensor(np.zeros(6, "float32")), tensor(6, 6)
    assert ask(Tensor(wide.array[:, ::2]), square)[1] == 1
    assert ask(stack, tensor(3, 6, 5))[1] == 2
    ask(stack, tensor(6))
    ask(tensor(6), square)
    ask(square, square, square)
    ask(square, square, Tensor(out.array.T), beta=2)
    ask(square, square, residual=square, bias=Tensor(wide.array[0, ::2]), activation="relu")
    ask(square, square, out, residual=out, column_sums=sums, out_scale=2)
    ask(square, square, out, residual=Tensor(out.array.T), bias=Tensor(out.array[0]))
    ask(tensor(6, 0), tensor(0, 6), out, bias=Tensor(wide.array[0, ::2]), beta=1)
    ask(tensor(5, 6, dtype="complex64"), tensor(6, 7, dtype="complex64"))
    ask(tensor(5, 6, dtype="float16"), tensor(6, 7, dtype="float16"), dtype="float32")


def test_size_with_packed_operands(gpu, torch, rng):  # noqa: F811
    x, y = Tensor(integer_array(rng, (3, 4), "float32")), Tensor(integer_array(rng, (4, 5), "float32"))
    packed = wsgemm.prepack(y)
    assert wsgemm.workspace_size(x, packed) == 32
    assert gpu.asked[0].packed_b in gpu.packed and gpu.asked[0].packed_a is None and gpu.asked[0].b == y.array.ctypes.data
    with pytest.raises(ValueError, match="b is packed, but may share memory"):
        wsgemm.workspace_size(Tensor(zeros(4, 4, dtype="float32")), packed, y)


def test_nothing_to_do_needs_nothing(gpu, torch):  # noqa: F811
    for shape_a, shape_b in (((0, 4), (4, 5)), ((3, 4), (4, 0)), ((3, 0), (0, 5)), ((0, 0), (0, 0))):
        assert wsgemm.workspace_size(Cuda(zeros(*shape_a), data=(0, False)), Tensor(zeros(*shape_b))) == 0
    assert not gpu.asked


def test_settings_of_the_handle_are_taken_along(gpu, monkeypatch):  # noqa: F811
    from wsgemm import _device_product

    seen = []
    ask = _device_product._get_workspace_size

    def look(pointer, *arguments):
        value = _lib.c_int()
        assert _lib.library.wsgemm_get_math(pointer, _lib.ctypes.byref(value)) == 0
        seen.append(value.value)
        return ask(pointer, *arguments)

    monkeypatch.setattr(_device_product, "_get_workspace_size", look)
    wsgemm.workspace_size(*arrays(), handle=wsgemm.Handle(math="tf32"))
    wsgemm.workspace_size(*arrays())
    assert seen == [_lib.Math.MATH_TF32, _lib.Math.MATH_DEFAULT]


@pytest.mark.parametrize(
    "b, keywords, error, words",
    [
        (zeros(4, 4), {}, TypeError, "b lies in host memory"),
        (Cuda(zeros(4, 4, dtype="float32")), {}, TypeError, "one type"),
        (Cuda(zeros(3, 4)), {}, ValueError, "do not fit"),
        (Cuda(zeros(4, 4)), {"beta": 1}, ValueError, "needs out"),
        (Cuda(zeros(4, 4)), {"out": Cuda(zeros(4, 8)[:, ::2])}, ValueError, "BLAS cannot write"),
        (Cuda(zeros(4, 4)), {"activation": "swish"}, ValueError, "swish"),
        (Cuda(zeros(4, 8)[:, ::2]), {}, ValueError, "b has shape .*; make a contiguous copy"),
    ],
)
def test_size_refuses(gpu, b, keywords, error, words):  # noqa: F811
    with pytest.raises(error, match=words):
        wsgemm.workspace_size(Cuda(zeros(4, 4)), b, **keywords)
    assert not gpu.asked


def test_size_on_several_gpus(gpu):  # noqa: F811
    x, y = zeros(4, 4), zeros(4, 4)
    gpu.device_of = lambda address: int(address // 256 == y.ctypes.data // 256)
    out = Cuda(zeros(4, 4))
    with pytest.raises(ValueError, match="a lies on GPU 0.*all must be together"):
        wsgemm.workspace_size(Cuda(x), Cuda(y), out)
    gpu.device_of = lambda address: -1
    with pytest.raises(wsgemm.WsgemmError, match="said to lie at"):
        wsgemm.workspace_size(Cuda(x), Cuda(y))
