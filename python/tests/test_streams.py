"""The calls of the CUDA driver that order streams, on a driver that only writes down what it is asked."""

import ctypes

import pytest
import wsgemm
from wsgemm import _lib, _streams

EVENT, CONTEXT = 77, 55


def number(x):
    return x.value if hasattr(x, "value") else x


class Driver:
    """Answers as libcuda does; `fails` names a function that fails."""

    def __init__(self):
        self.calls = []
        self.fails = None
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
            return 700 if name == self.fails else 0

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
    driver.fails = name
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
