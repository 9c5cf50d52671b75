"""CUDA streams: which device an address belongs to, and the order between streams of different libraries.

Calls the driver that is already in the process, through ctypes; it is never initialised from here. An order costs the host
nothing: one stream waits for an event of the other. Which stream a product runs on is left to _device_product.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_uint64, c_void_p
from typing import Any

from . import _lib

LEGACY = 1  # CU_STREAM_LEGACY: the default stream, which a null handle means too

_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_MEMORY_TYPE = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_IS_MANAGED = 8  # CU_POINTER_ATTRIBUTE_IS_MANAGED
_HOST_MEMORY = 1  # CU_MEMORYTYPE_HOST
_EVENT_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING

_SIGNATURES: dict[str, list[Any]] = {
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuStreamSynchronize": [c_void_p],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
}


@functools.cache
def require_gpu_backend() -> None:
    """Raises unless the library tells GPU memory from host memory: it would take a device address for a host one."""
    if "cuda" not in _lib.text(_lib.library.wsgemm_config)["backends"].split():
        raise _lib.WsgemmError(
            _lib.Status.NOT_SUPPORTED,
            "WSGEMM_NOT_SUPPORTED: this build of wsgemm has no GPU backend; it needs CUDA's compiler (nvcc) when it is built "
            "(`pip install -v .` in the sources says what is missing)",
        )
    state = _lib.text(_lib.library.wsgemm_machine).get("gpu", "")
    if not state.startswith("driver found"):
        raise _lib.WsgemmError(_lib.Status.INSUFFICIENT_DRIVER, f"WSGEMM_INSUFFICIENT_DRIVER: {state}")


@functools.cache
def _driver() -> ctypes.CDLL:
    library = ctypes.CDLL("libcuda.so.1")
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c_int, arguments
    return library


def _call(name: str, *arguments: Any) -> None:
    result = getattr(_driver(), name)(*arguments)
    if result:
        text = c_char_p()
        _driver().cuGetErrorName(result, byref(text))
        error = (text.value or b"unknown CUDA error").decode()
        raise _lib.WsgemmError(_lib.Status.DEVICE_ERROR, f"WSGEMM_DEVICE_ERROR: {name}: {error}")


def device_of(address: int) -> int:
    """The ordinal of the GPU that an address belongs to; -1: it is no GPU memory of this process."""
    memory_type, is_managed, device = c_uint(), c_uint(), c_int(-1)
    ask = _driver().cuPointerGetAttribute
    if ask(byref(memory_type), _MEMORY_TYPE, address) or ask(byref(device), _DEVICE_ORDINAL, address):
        return -1
    if memory_type.value == _HOST_MEMORY and (ask(byref(is_managed), _IS_MANAGED, address) or not is_managed.value):
        return -1
    return device.value


@functools.cache
def _primary_context(device: int) -> int | None:
    handle, context = c_int(), c_void_p()
    _call("cuDeviceGet", byref(handle), device)
    _call("cuDevicePrimaryCtxRetain", byref(context), handle)  # kept to the end of the process, as the C library does
    return context.value


def _give_back(is_done: bool, name: str, *arguments: Any) -> None:
    """A call that undoes another. is_done: what was done in between; if it was not, its error is the one that is told."""
    try:
        _call(name, *arguments)
    except _lib.WsgemmError:
        if is_done:
            raise


@contextlib.contextmanager
def _current(device: int) -> Iterator[None]:
    _call("cuCtxPushCurrent_v2", _primary_context(device))
    is_done = False
    try:
        yield
        is_done = True
    finally:
        _give_back(is_done, "cuCtxPopCurrent_v2", byref(c_void_p()))


def order(device: int, first: int, then: int) -> None:
    """Makes what is put on the stream `then` from now on wait for what has been put on `first` so far."""
    with _current(device):
        event = c_void_p()
        _call("cuEventCreate", byref(event), _EVENT_DISABLE_TIMING)
        is_done = False
        try:
            _call("cuEventRecord", event, first)
            _call("cuStreamWaitEvent", then, event, 0)
            is_done = True
        finally:
            _give_back(is_done, "cuEventDestroy_v2", event)  # only once it has been reached: the driver sees to that


def wait(device: int, stream: int) -> None:
    """Returns when all that has been put on the stream is done. Releases the GIL meanwhile."""
    with _current(device):
        _call("cuStreamSynchronize", stream)
