"""The calls of the CUDA driver that order streams, on a driver that only writes down what it is asked; and what products do
where an order fails."""

import contextlib
import ctypes
import gc
import weakref

import numpy as np
import pytest
import wsgemm
from wsgemm import _lib, _streams
from wsgemm_fakes import Cuda, Lent, Tensor, aligned, faked_torch, gpu  # noqa: F401

EVENT, CONTEXT = 77, 55


def number(x):
    return x.value if hasattr(x, "value") else x


class Driver:
    """Answers as libcuda does; `fails` names functions that fail."""

    def __init__(self):
        self.calls = []
        self.fails = ()
        self.pointers = {}  # address: (memory type, managed, device)

    def __getattr__(self, name):
        def function(*arguments):
            self.calls.append((name, *(number(x) for x in arguments if not hasattr(x, "_obj"))))
            outputs = {"cuEventCreate": EVENT, "cuDevicePrimaryCtxRetain": CONTEXT, "cuDeviceGet": 3}
            if name in outputs:
                arguments[0]._obj.value = outputs[name]
            if name == "cuGetErrorName":
                arguments[1]._obj.value = b"CUDA_ERROR_FAKED"
            if name == "cuPointerGetAttribute":
                found = self.pointers.get(arguments[2])
                if found is None:
                    return 1
                arguments[0]._obj.value = found[{2: 0, 8: 1, 9: 2}[arguments[1]]]
            return 700 if name in self.fails else 0

        return function


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    monkeypatch.setattr(_streams, "_driver", lambda: fake)
    _streams._primary_context.cache_clear()
    yield fake
    _streams._primary_context.cache_clear()


RETAIN = [("cuDeviceGet", 2), ("cuDevicePrimaryCtxRetain", 3)]


def test_order(driver):
    _streams.order(2, 10, 20)
    inside = [
        ("cuCtxPushCurrent_v2", CONTEXT),
        ("cuEventCreate", 2),
        ("cuEventRecord", EVENT, 10),
        ("cuStreamWaitEvent", 20, EVENT, 0),
        ("cuEventDestroy_v2", EVENT),
        ("cuCtxPopCurrent_v2",),
    ]
    assert driver.calls == RETAIN + inside
    driver.calls.clear()
    _streams.order(2, 10, 20)  # the context is retained once
    assert driver.calls == inside


def test_wait(driver):
    _streams.wait(2, 10)
    assert driver.calls[2:] == [("cuCtxPushCurrent_v2", CONTEXT), ("cuStreamSynchronize", 10), ("cuCtxPopCurrent_v2",)]


@pytest.mark.parametrize("name", ["cuEventRecord", "cuStreamWaitEvent", "cuEventCreate", "cuCtxPushCurrent_v2", "cuDeviceGet"])
def test_failures_are_told_and_leave_nothing_behind(driver, name):
    driver.fails = (name,)
    with pytest.raises(wsgemm.WsgemmError, match=f"{name}: CUDA_ERROR_FAKED") as caught:
        _streams.order(2, 10, 20)
    assert caught.value.status == _lib.Status.DEVICE_ERROR
    names = [call[0] for call in driver.calls]
    assert names.count("cuCtxPopCurrent_v2") == (name not in ("cuCtxPushCurrent_v2", "cuDeviceGet"))
    assert names.count("cuEventDestroy_v2") == (name in ("cuEventRecord", "cuStreamWaitEvent"))


def test_device_of(driver):
    device, host = 2, 1
    driver.pointers = {16: (device, 0, 4), 32: (host, 0, 0), 48: (host, 1, 5), 64: (device, 1, 6)}
    assert [_streams.device_of(address) for address in (16, 32, 48, 64, 80)] == [4, -1, 5, 6, -1]


def test_signatures_are_those_of_the_driver():
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        pytest.skip("no driver here")
    for name in _streams._SIGNATURES:
        assert hasattr(library, name), name


# ---- Failures in the midst ------------------------------------------------------------------------------------------------


class Failing:
    """Orders and waits that fail as `fails` says, on the recorder of `gpu`."""

    def __init__(self, gpu, monkeypatch):  # noqa: F811
        self.log = gpu.log
        self.fails = {}  # entry of the log: what is raised
        monkeypatch.setattr(_streams, "order", lambda device, first, then: self.note("order", first, then))
        monkeypatch.setattr(_streams, "wait", lambda device, stream: self.note("wait", stream))

    def note(self, *entry):
        self.log.append(entry)
        if entry in self.fails:
            raise self.fails[entry]


@pytest.fixture
def failing(gpu, monkeypatch):  # noqa: F811
    return Failing(gpu, monkeypatch)


def arguments(log):
    """On the streams 5 (the product's), 6 and 7, one of them lent."""
    square = np.zeros((2, 2), "float32")
    lent = Lent(square.copy(), log=log)
    parts = {"bias": Cuda(square[0].copy(), stream=6), "residual": Cuda(square.copy(), stream=7)}
    return (Cuda(square.copy(), stream=5), lent, Cuda(square.copy(), stream=5)), parts


BEFORE = [("order", 6, 5), ("order", 7, 5)]
AFTER = [("order", 5, 6), ("order", 5, 7)]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("fails", [AFTER[:1], AFTER[1:], AFTER, [("wait", 5)], [*AFTER, ("wait", 5)]])
def test_all_streams_are_ordered_and_waited_for_whatever_fails(gpu, failing, fails, interrupt):  # noqa: F811
    operands, parts = arguments(gpu.log)
    failing.fails = {entry: interrupt(entry) for entry in fails}
    with pytest.raises(interrupt) as caught:
        wsgemm.matmul(*operands, **parts)
    assert caught.value is failing.fails[fails[0]]
    assert gpu.log == [*BEFORE, ("gemm", 5), *AFTER, ("wait", 5), "deleted"]


@pytest.mark.parametrize("fails", [[], AFTER[:1], [("wait", 5)]])
def test_the_product_s_own_error_comes_first(gpu, failing, fails):  # noqa: F811
    operands, parts = arguments(gpu.log)
    gpu.on_gemm = lambda handle: 11
    failing.fails = {entry: MemoryError() for entry in fails}
    with pytest.raises(wsgemm.WsgemmError) as caught:
        wsgemm.matmul(*operands, **parts)
    assert caught.value.status == _lib.Status.DEVICE_ERROR
    assert gpu.log == [*BEFORE, ("gemm", 5), *AFTER, ("wait", 5), "deleted"]


def test_a_stream_that_cannot_be_ordered_is_waited_for(gpu, failing):  # noqa: F811
    # What its library does next would not come after the product.
    failing.fails = {("order", 5, 6): MemoryError()}
    square = np.zeros((2, 2), "float32")
    with pytest.raises(MemoryError):
        wsgemm.matmul(Cuda(square, stream=6), Cuda(square, stream=5), Cuda(square.copy(), stream=5))
    assert gpu.log == [("order", 6, 5), ("gemm", 5), ("order", 5, 6), ("wait", 5)]


@pytest.mark.parametrize("entry", BEFORE)
def test_nothing_runs_that_does_not_come_after_its_operands(gpu, failing, entry):  # noqa: F811
    operands, parts = arguments(gpu.log)
    failing.fails = {entry: MemoryError()}
    with pytest.raises(MemoryError):
        wsgemm.matmul(*operands, **parts)
    assert gpu.log == [*BEFORE[: BEFORE.index(entry) + 1], "deleted"]


def test_packing_waits_as_products_do(gpu, failing):  # noqa: F811
    x, memory = Cuda(np.ones((4, 4), "float32"), stream=6), Cuda(aligned(1024), stream=5)
    failing.fails = {("order", 5, 6): MemoryError()}
    with pytest.raises(MemoryError):
        wsgemm.prepack(x, memory=memory)
    assert gpu.log[:4] == [("order", 6, 5), ("prepack", 5), ("order", 5, 6), ("wait", 5)]
    failing.fails = {}
    gc.collect()
    assert not gpu.packed  # the form that nobody was given


def test_no_error_keeps_arrays_alive(gpu, failing):  # noqa: F811
    # Errors of steps that are all tried must not make a cycle with the frame that holds them.
    failing.fails = {("order", 5, 6): MemoryError()}
    operands, parts = arguments(gpu.log)
    alive = weakref.ref(operands[0])
    gc.disable()
    try:
        with contextlib.suppress(MemoryError):
            wsgemm.matmul(*operands, **parts)
        failing.fails.clear()
        del operands, parts
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["cuEventDestroy_v2", "cuCtxPopCurrent_v2"])
def test_failures_to_clean_up_are_told(driver, name):
    driver.fails = (name,)
    with pytest.raises(wsgemm.WsgemmError, match=f"{name}: CUDA_ERROR_FAKED"):
        _streams.order(2, 10, 20)
    assert "cuCtxPopCurrent_v2" in [call[0] for call in driver.calls]


@pytest.mark.parametrize("name", ["cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"])
def test_the_first_failure_of_the_driver_is_told(driver, name):
    driver.fails = (name, "cuEventDestroy_v2", "cuCtxPopCurrent_v2")
    with pytest.raises(wsgemm.WsgemmError, match=f"{name}: CUDA_ERROR_FAKED"):
        if name == "cuStreamSynchronize":
            _streams.wait(2, 10)
        else:
            _streams.order(2, 10, 20)
    names = [call[0] for call in driver.calls]
    assert "cuCtxPopCurrent_v2" in names and ("cuEventDestroy_v2" in names) == (name != "cuStreamSynchronize")


# ---- torch is told of what was written -------------------------------------------------------------------------------------


def test_torch_is_told_of_what_failing_calls_may_have_written(gpu, torch):  # noqa: F811
    x, out, sums = (Tensor(np.zeros(shape, "float32")) for shape in ((2, 2), (2, 2), (2,)))
    gpu.on_gemm = lambda handle: 11
    with pytest.raises(wsgemm.WsgemmError):
        wsgemm.matmul(x, Tensor(np.zeros((2, 2), "float32")), out, column_sums=sums)
    assert (out.n_written, sums.n_written) == (1, 1)
    gpu.device_of = lambda address: -1
    with pytest.raises(wsgemm.WsgemmError):
        wsgemm.matmul(x, Tensor(np.zeros((2, 2), "float32")), out, column_sums=sums)
    assert (out.n_written, sums.n_written) == (1, 1)  # nothing ran
    gpu.device_of = gpu.on_gemm = lambda x: 0
    assert (
        wsgemm.matmul(Tensor(np.zeros((0, 2), "float32")), x, Tensor(np.zeros((0, 2), "float32")), column_sums=sums) is not None
    )
    assert sums.n_written == 2
