"""DLPack: an object's tensor, borrowed through its capsule and given back once.

A capsule is consumed by renaming it, so that its own destructor leaves the tensor alone; from then on the deleter is ours to
call, exactly once, whatever happens. Both capsules are understood: "dltensor" and, with flags, "dltensor_versioned".
The reading of the tensor is here; what a product does with it is left to _device.py.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple

import numpy as np

from ._arrays import BFLOAT16_BITS, bfloat16

CUDA, CUDA_MANAGED = 2, 13  # kDLCUDA, kDLCUDAManaged
READ_ONLY, IS_COPIED = 1, 2  # bits of a versioned tensor's flags
MAX_VERSION = (1, 0)


class Device(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


# Deleters run as they do in a capsule's destructor: with the GIL held, which a producer may count on.
Deleter = ctypes.PYFUNCTYPE(None, c_void_p)

# A capsule keeps the address of its name: these bytes live as long as the module.
LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}

# Not ctypes.pythonapi, whose functions' types any module may set for all of them, as JAX does.
_python = ctypes.PyDLL(None)
_is_valid = _python.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [py_object, c_char_p]
_get_pointer = _python.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, [py_object, c_char_p]
_set_name = _python.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = c_int, [py_object, c_char_p]


def pointer_in(capsule: Any, name: bytes) -> int:
    """0: this is no capsule of that name."""
    return int(_get_pointer(capsule, name)) if _is_valid(capsule, name) else 0


_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX = 0, 1, 2, 4, 5  # kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLComplex
_TYPES: dict[tuple[int, int], np.dtype[Any]] = {
    (_INT, 32): np.dtype("int32"),  # offsets of groups
    (_INT, 64): np.dtype("int64"),
    (_UINT, 8): np.dtype("uint8"),  # memory that a packed operand goes to
    (_UINT, 16): BFLOAT16_BITS,  # which bgemm takes
    (_FLOAT, 16): np.dtype("float16"),
    (_FLOAT, 32): np.dtype("float32"),
    (_FLOAT, 64): np.dtype("float64"),
    (_COMPLEX, 64): np.dtype("complex64"),
    (_COMPLEX, 128): np.dtype("complex128"),
}
_TYPE_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class Loan(NamedTuple):
    """A tensor on loan: where its elements lie, as it tells."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: C order
    address: int
    is_readonly: bool
    is_copy: bool


def lies_on_cuda(x: Any) -> bool:
    device_type, _ = x.__dlpack_device__()
    return int(device_type) in (CUDA, CUDA_MANAGED)


def borrow(x: Any, name: str, stream: int, closing: ExitStack) -> Loan:
    """x's tensor, fit to be used on the CUDA stream (a handle, or 1 or 2 for the default ones) until `closing` closes.

    Raises:
        TypeError: an element type that no product takes, or no capsule.
        BufferError: a version of DLPack that is not known here; and whatever x raises.
    """
    try:
        capsule = x.__dlpack__(stream=stream, max_version=MAX_VERSION)
    except TypeError:  # older than versions
        capsule = x.__dlpack__(stream=stream)
    for kind in (VERSIONED, LEGACY):
        if _is_valid(capsule, kind):
            break
    else:
        raise TypeError(f"{name}.__dlpack__() of {type(x).__name__} gave no unused DLPack capsule")
    pointer = _get_pointer(capsule, kind)
    managed: Any = (ManagedVersioned if kind is VERSIONED else Managed).from_address(pointer)
    deleter = managed.deleter
    _set_name(capsule, _USED[kind])
    if deleter:
        closing.callback(Deleter(deleter), pointer)
    flags = 0
    if kind is VERSIONED:
        if managed.major != MAX_VERSION[0]:  # nothing behind the deleter may be read
            raise BufferError(f"{name} comes as DLPack {managed.major}.{managed.minor}, but only major version 1 is known here")
        flags = managed.flags
    return _read(managed.tensor, name, flags)


def _read(tensor: Any, name: str, flags: int) -> Loan:
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    dtype = bfloat16() if (code, bits) == (_BFLOAT, 16) else _TYPES.get((code, bits))
    if dtype is None or lanes != 1:
        told = f"{_TYPE_NAMES.get(code, f'DLPack type {code} of ')}{bits}" + (f" x {lanes}" if lanes != 1 else "")
        raise TypeError(f"{name} is {told}, but it must be float16, bfloat16, float32, float64, complex64 or complex128")
    if tensor.device.device_type not in (CUDA, CUDA_MANAGED):
        raise BufferError(f"{name} told of a CUDA device, but its DLPack tensor lies on device type {tensor.device.device_type}")
    n = tensor.ndim
    shape = tuple(tensor.shape[:n]) if n else ()
    if min(shape, default=0) < 0:
        raise TypeError(f"{name}.__dlpack__() makes no sense: shape {shape}")
    return Loan(
        dtype,
        shape,
        tuple(tensor.strides[:n]) if n and tensor.strides else None,
        (tensor.data or 0) + tensor.byte_offset,
        bool(flags & READ_ONLY),
        bool(flags & IS_COPIED),
    )
