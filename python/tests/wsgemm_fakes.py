"""Device arrays without a device: objects that tell of GPU memory but lie in a NumPy array, and libraries that make such.

A product of them goes all the way to the C call, which the fixture `gpu` records and then lets the CPU do: what it reads and
writes is what a GPU would read and write.
"""

import ctypes
import sys
import types

import numpy as np
import pytest
import wsgemm._product as product
from wsgemm import _device_product, _dlpack, _handle, _level3_plan, _lib, _packed, _prepack, _streams
from wsgemm._arrays import bfloat16

CUDA_TYPES = {
    "uint8": (1, 8),
    "uint16": (1, 16),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "complex64": (5, 64),
    "complex128": (5, 128),
}


class Cuda:
    """Has __cuda_array_interface__; the keywords are put into it."""

    def __init__(self, array, readonly=False, **keys):
        self.array = array
        self.keys = {"version": 3, "stream": None, "data": (array.ctypes.data, readonly), **keys}

    @property
    def __cuda_array_interface__(self):
        array = self.array
        strides = None if array.flags.c_contiguous else array.strides
        return {"typestr": array.dtype.str, "shape": array.shape, "strides": strides, **self.keys}


# ---- DLPack --------------------------------------------------------------------------------------------------------------

_capsules = ctypes.PyDLL(None)  # not ctypes.pythonapi, where JAX sets types of its own
_new = _capsules.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name = _capsules.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Lent:
    """Has __dlpack__: a legacy tensor, or with `version` one with version and flags. `log` gets "deleted" from the deleter."""

    def __init__(self, array, version=None, flags=0, device=2, told_device=2, log=None, byte_offset=0, **more):
        self.array = array
        self.version = version
        self.flags = flags
        self.device = device
        self.told_device = told_device
        self.log = [] if log is None else log
        self.byte_offset = byte_offset
        self.more = more  # fields of the tensor by name, or deleter=None, or dtype=(code, bits, lanes)
        self.asked = []
        self.capsules = []
        self.kept = []

    def __dlpack_device__(self):
        return (self.told_device, 0)

    def __dlpack__(self, *, stream=None, **keywords):
        if keywords and self.version is None:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        self.asked.append((stream, keywords))
        managed = _dlpack.Managed() if self.version is None else _dlpack.ManagedVersioned()
        deleter = _Callback(lambda pointer: self.log.append("deleted"))
        if "deleter" not in self.more:
            managed.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
        if self.version is not None:
            managed.major, managed.minor = self.version
            managed.flags = self.flags
        self.kept += [managed, deleter, *self._fill(managed.tensor)]
        name = b"dltensor" if self.version is None else b"dltensor_versioned"
        self.capsules.append(_new(ctypes.addressof(managed), name, None))
        return self.capsules[-1]

    def _fill(self, tensor):
        array, n = self.array, self.array.ndim
        shape = (ctypes.c_int64 * n)(*array.shape)
        strides = (ctypes.c_int64 * n)(*(stride // array.itemsize for stride in array.strides))
        tensor.data = (array.ctypes.data - self.byte_offset) if array.size else None
        tensor.byte_offset = self.byte_offset if array.size else 0
        tensor.device.device_type = self.device
        tensor.ndim = n
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = self.more.get("dtype", (*CUDA_TYPES[array.dtype.name], 1))
        if n:
            tensor.shape = shape
            if self.more.get("strides", True):
                tensor.strides = strides
        return shape, strides

    def names(self):
        return [_name(capsule) for capsule in self.capsules]


# ---- Libraries -----------------------------------------------------------------------------------------------------------


class TorchType:
    """A torch.dtype: its name, and how torch's releases show it in __cuda_array_interface__ unless NumPy has it."""

    def __init__(self, name, itemsize):
        self.name = name
        self.itemsize = itemsize

    def __repr__(self):
        return f"torch.{self.name}"


# Those that NumPy has, and some that it does not.
TORCH_TYPES = {name: TorchType(name, bits // 8) for name, (_, bits) in CUDA_TYPES.items()}
TORCH_TYPES |= {name: TorchType(name, np.dtype(name).itemsize) for name in ("bool", "int8", "int16", "int32", "int64")}
TORCH_TYPES |= {"float8_e4m3fn": TorchType("float8_e4m3fn", 1), "complex32": TorchType("complex32", 4)}


class Tensor(Cuda):
    """A torch tensor, as far as wsgemm looks at one: version 2 of the interface, which tells no stream.

    shown: bfloat16 in the interface; None: it raises KeyError, as for all types that NumPy lacks.
    """

    requires_grad = False
    is_cuda = True
    device = "cuda:0"
    layout = "torch.strided"
    conjugated = negated = False
    shown = "<V2"

    def __init__(self, array, dtype=None, **keys):
        super().__init__(array, version=2, **keys)
        del self.keys["stream"]
        self.dtype = TORCH_TYPES[array.dtype.name] if dtype is None else dtype
        self.n_written = 0

    @property
    def __cuda_array_interface__(self):
        if self.requires_grad:
            raise RuntimeError("requires grad")
        typestr = self.shown if self.dtype.name == "bfloat16" else np.dtype(self.dtype.name).str
        if typestr is None:
            raise KeyError(self.dtype)
        return {**super().__cuda_array_interface__, "typestr": typestr}

    @property
    def shape(self):
        return self.array.shape

    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def get_device(self):
        return 0

    def data_ptr(self):
        return self.array.ctypes.data if self.array.size else 0

    def element_size(self):
        return self.dtype.itemsize

    def detach(self):
        return Tensor(self.array, self.dtype)

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated

    def is_inference(self):
        return False

    def resolve_neg(self):
        return Tensor(-self.array) if self.negated else self

    def clone(self, memory_format):
        assert memory_format == "contiguous_format"
        return Tensor(self.array.copy(order="C"), self.dtype)


def unset(shape, dtype):
    array = np.empty(shape, dtype)
    ctypes.memset(array.ctypes.data, 0xFF, array.nbytes)  # NaN in every type
    return array


def fake_torch(stream=5, is_grad_enabled=True):
    def increment_version(tensor):
        tensor.n_written += 1

    def empty(shape, dtype, device):
        assert type(dtype) is TorchType
        return Tensor(unset(shape, bfloat16() if dtype.name == "bfloat16" else dtype.name))

    return types.SimpleNamespace(
        Tensor=Tensor,
        contiguous_format="contiguous_format",
        strided="torch.strided",
        is_grad_enabled=lambda: is_grad_enabled,
        cuda=types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=stream)),
        empty=empty,
        empty_strided=lambda shape, strides, dtype, device: empty(shape, dtype, device),
        autograd=types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=increment_version)),
        **TORCH_TYPES,
    )


class Device:
    current = None

    def __enter__(self):
        Device.current = self

    def __exit__(self, *_):
        Device.current = None


class ndarray(Cuda):  # noqa: N801
    """A cupy array. Its stream is that of its device while that is the current one."""

    def __init__(self, array):
        super().__init__(array)
        self.dtype = array.dtype
        self.device = Device()

    def copy(self, order):
        assert Device.current is self.device
        return ndarray(self.array.copy(order=order))


def fake_cupy(stream=6):
    def get_current_stream():
        assert Device.current is not None
        return types.SimpleNamespace(ptr=stream)

    def empty(shape, dtype):
        assert Device.current is not None
        return ndarray(unset(shape, bfloat16() if dtype == "bfloat16" else dtype))

    return types.SimpleNamespace(ndarray=ndarray, cuda=types.SimpleNamespace(get_current_stream=get_current_stream), empty=empty)


class Array(Lent):
    """A jax array: read-only, and its interface tells no stream."""

    sharding = "sharding"

    def __init__(self, array, **keys):
        super().__init__(array, version=(1, 1), flags=_dlpack.READ_ONLY, **keys)
        self.dtype = array.dtype

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("jax's interface orders no streams")


def fake_jax(log):
    def empty(shape, dtype, device):
        assert device == "sharding"
        return Array(unset(shape, bfloat16() if dtype == "bfloat16" else dtype), log=log)

    return types.SimpleNamespace(
        Array=Array,
        numpy=types.SimpleNamespace(empty=empty, array=lambda x, copy: Array(x.array.copy(), log=log)),
    )


# ---- The recorder --------------------------------------------------------------------------------------------------------


class Recorder:
    """What reached the driver and the C library, in order: ("order", first, then), ("gemm", stream), ("level3", stream), ("wait", stream),
    ("prepack", stream), ("destroy", record)."""

    def __init__(self):
        self.log = []
        self.descs = []
        self.level3 = []  # descriptors of Level 3 calls
        self.handles = []
        self.device_of = lambda address: 0
        self.on_gemm = lambda handle: 0
        self.packed = {}  # record: what was packed
        self.asked = []  # descriptors whose workspace was asked for
        self.workspaces = {}  # C handle (None: the default one): (address, bytes) that it has now


# ---- Workspaces ----------------------------------------------------------------------------------------------------------


def aligned(n_bytes, dtype="uint8"):
    """An array of so many bytes, as libraries align them."""
    array = np.zeros(n_bytes + 256, "uint8")
    begin = -array.ctypes.data % 256
    return array[begin : begin + n_bytes].view(dtype)


def workspace_bytes(desc):
    return (desc.m + desc.n) * desc.k + (10_000 if desc.residual is not None and desc.residual == desc.c else 0)


class Workspaces:
    """The C functions round a workspace."""

    def __init__(self, recorder):
        self.recorder = recorder

    def set_workspace(self, handle, address, n_bytes):
        if address is None and n_bytes:
            return _lib.Status.INVALID_POINTER
        if address is not None and address % 256:
            return _lib.Status.INVALID_VALUE
        if address is not None and self.recorder.device_of(address) < 0:
            return _lib.Status.INVALID_POINTER
        self.recorder.workspaces[handle] = (address, n_bytes)
        return 0

    def get_workspace_size(self, handle, packed, size):
        desc = _lib.GemmDesc.from_buffer_copy(packed.ljust(_lib.DESC_BYTES, b"\0"))
        self.recorder.asked.append(_lib.GemmDesc.from_buffer_copy(bytes(desc)))
        desc.packed_a = desc.packed_b = None
        status = _lib.library.wsgemm_get_workspace_size(handle, bytes(desc)[: len(packed)], size)  # looks at the descriptor
        size._obj.value = workspace_bytes(desc)
        return status


# ---- Packed operands -----------------------------------------------------------------------------------------------------

CONJUGATES = (_lib.Op.CONJ_NO_TRANS, _lib.Op.CONJ_TRANS)
TRANSPOSES = (_lib.Op.TRANS, _lib.Op.CONJ_TRANS)


def operand_of(desc, which):
    """All that the library compares of a packed operand (src/api/packed.c), in its own words."""
    is_complex = desc.type_a in (_lib.Type.C32, _lib.Type.C64)
    op = getattr(desc, "trans" + which)
    is_a = (which == "b") == (desc.layout == _lib.Layout.ROW_MAJOR)
    stride = getattr(desc, "stride_" + which) if desc.batch_count > 1 else 0
    return {
        "type": desc.type_a,
        "data": getattr(desc, which),
        "k": desc.k,
        "n_x": desc.m if which == "a" else desc.n,
        "ld": getattr(desc, "ld" + which),
        "transposition": (op in TRANSPOSES) == is_a,
        "conjugation": is_complex and op in CONJUGATES,
        "side": is_complex and is_a,
        "n_products": desc.batch_count if stride else 1,
        "stride": stride,
    }


def packed_bytes(desc, which):
    operand = operand_of(desc, which)
    return 8 * operand["n_x"] * operand["k"] if desc.type_a in (_lib.Type.F32, _lib.Type.C32) else 0


class Packing:
    """The C functions round a packed form, which is a number of bytes 0xAB."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.n_made = 0

    def get_packed_size(self, handle, packed, operand, size):
        status = _lib.library.wsgemm_get_packed_size(handle, packed, operand, size)  # looks at the descriptor
        size._obj.value = packed_bytes(_lib.GemmDesc.from_buffer_copy(packed.ljust(_lib.DESC_BYTES, b"\0")), "ab"[operand])
        return status

    def prepack(self, handle, packed, operand, memory, n_bytes, record):
        desc = _lib.GemmDesc.from_buffer_copy(packed.ljust(_lib.DESC_BYTES, b"\0"))
        n_needed = packed_bytes(desc, "ab"[operand])
        if n_bytes < n_needed:
            return _lib.Status.WORKSPACE_TOO_SMALL
        ctypes.memset(memory, 0xAB, n_needed)
        self.n_made += 1
        record._obj.value = 0xBAD000 + self.n_made
        self.recorder.packed[record._obj.value] = operand_of(desc, "ab"[operand])
        self.recorder.log.append(("prepack", stream_of(handle)))
        return 0

    def destroy(self, record):
        assert self.recorder.packed.pop(record)
        self.recorder.log.append(("destroy", record))


def stream_of(handle):
    stream = ctypes.c_void_p()
    assert _lib.library.wsgemm_get_stream(handle, ctypes.byref(stream)) == 0
    return stream.value


@pytest.fixture
def gpu(monkeypatch):
    recorder = Recorder()
    gemm = product._gemm

    def record(handle, packed):
        recorder.descs.append(_lib.GemmDesc.from_buffer_copy(packed.ljust(_lib.DESC_BYTES, b"\0")))
        recorder.handles.append(handle)
        recorder.log.append(("gemm", stream_of(handle)))
        desc = _lib.GemmDesc.from_buffer_copy(bytes(recorder.descs[-1]))
        for which in "ab":
            pointer = getattr(desc, "packed_" + which)
            if pointer is not None:
                assert desc.struct_bytes == len(packed) == _lib.DESC_BYTES
                assert operand_of(desc, which) == recorder.packed[pointer]
                setattr(desc, "packed_" + which, None)
                packed = bytes(desc)
        return recorder.on_gemm(handle) or gemm(handle, packed)

    level3 = _level3_plan._level3

    def record_level3(handle, packed):
        recorder.level3.append(_lib.Level3Desc.from_buffer_copy(packed))
        recorder.log.append(("level3", stream_of(handle)))
        return recorder.on_gemm(handle) or level3(handle, packed)

    monkeypatch.setattr(product, "_gemm", record)
    monkeypatch.setattr(_level3_plan, "_level3", record_level3)
    packing = Packing(recorder)
    monkeypatch.setattr(_prepack, "_get_packed_size", packing.get_packed_size)
    monkeypatch.setattr(_prepack, "_prepack", packing.prepack)
    monkeypatch.setattr(_packed, "_destroy", packing.destroy)
    workspaces = Workspaces(recorder)
    monkeypatch.setattr(_handle, "_set_workspace", workspaces.set_workspace)
    monkeypatch.setattr(_device_product, "_get_workspace_size", workspaces.get_workspace_size)
    monkeypatch.setattr(_streams, "require_gpu_backend", lambda: None)
    monkeypatch.setattr(_streams, "device_of", lambda address: recorder.device_of(address))
    monkeypatch.setattr(_streams, "order", lambda device, first, then: recorder.log.append(("order", first, then)))
    monkeypatch.setattr(_streams, "wait", lambda device, stream: recorder.log.append(("wait", stream)))
    assert _device_product._streams is _streams
    return recorder


# Fixtures with the names of the libraries that they are.


@pytest.fixture(name="torch")
def faked_torch(monkeypatch):
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture(name="cupy")
def faked_cupy(monkeypatch):
    module = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.fixture(name="jax")
def faked_jax(monkeypatch, gpu):
    module = fake_jax(gpu.log)
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


@pytest.fixture(params=["float16", "bfloat16", "bfloat16 of ml_dtypes"])
def half(request, monkeypatch):
    """The dtype; bfloat16 without and with ml_dtypes."""
    if request.param.endswith("ml_dtypes"):
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    return bfloat16() if request.param == "bfloat16" else np.dtype(request.param)


def zeros(*shape, dtype="float64"):
    return np.zeros(shape, dtype)
