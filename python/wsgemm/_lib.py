"""The C library: finding it, and its interface in ctypes.

Mirrors include/wsgemm.h name by name (python/tests/test_header.py compares every value, offset and signature) and turns a
status into an exception. What the numbers mean for arrays is left to _layout.py and _product.py.

Searched in this order: the file named by WSGEMM_LIBRARY, the package's own folder, the system's library path.
"""

from __future__ import annotations

import copyreg
import ctypes
import enum
import os
import struct
import sys
from ctypes import c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

API_VERSION = (0, 1)  # of the header that this file mirrors: major, minor


class Status(enum.IntEnum):
    SUCCESS = 0
    INVALID_HANDLE = 1
    INVALID_VALUE = 2
    INVALID_POINTER = 3
    ALLOC_FAILED = 4
    NOT_SUPPORTED = 5
    NO_DEVICE = 6
    INSUFFICIENT_DRIVER = 7
    ARCH_MISMATCH = 8
    CAPTURE_UNSAFE = 9
    WORKSPACE_TOO_SMALL = 10
    DEVICE_ERROR = 11
    INTERNAL_ERROR = 12
    FILE_ERROR = 13
    STOPPED = 14


class Layout(enum.IntEnum):
    ROW_MAJOR = 101
    COL_MAJOR = 102


class Op(enum.IntEnum):
    NO_TRANS = 111
    TRANS = 112
    CONJ_TRANS = 113
    CONJ_NO_TRANS = 114


class Uplo(enum.IntEnum):
    UPPER = 121
    LOWER = 122


class Diag(enum.IntEnum):
    NON_UNIT = 131
    UNIT = 132


class Side(enum.IntEnum):
    LEFT = 141
    RIGHT = 142


class Type(enum.IntEnum):
    F32 = 0
    F64 = 1
    C32 = 2
    C64 = 3
    F16 = 4
    BF16 = 5


class Ragged(enum.IntEnum):
    RAGGED_NONE = 0
    RAGGED_M = 1
    RAGGED_N = 2
    RAGGED_K = 3


class Math(enum.IntEnum):
    MATH_INHERIT = 0
    MATH_DEFAULT = 1
    MATH_PEDANTIC = 2
    MATH_TF32 = 3


class Policy(enum.IntEnum):
    POLICY_AUTO = 0
    POLICY_FIXED_WORK = 1
    POLICY_FIXED_BLOCKS = 2
    POLICY_STEAL = 3
    POLICY_CLC = 4
    POLICY_FOREACH = 5


class Offload(enum.IntEnum):
    OFFLOAD_ALWAYS = 0
    OFFLOAD_AUTO = 1


class ScalarMode(enum.IntEnum):
    SCALAR_VALUE = 0
    SCALAR_DEVICE = 1


class Epilogue(enum.IntEnum):
    EPILOGUE_NONE = 0
    EPILOGUE_RELU = 1
    EPILOGUE_GELU_TANH = 2
    EPILOGUE_GELU_ERF = 3
    EPILOGUE_SILU = 4


class Bias(enum.IntEnum):
    BIAS_PER_ROW = 0
    BIAS_PER_COLUMN = 1


class Operand(enum.IntEnum):
    OPERAND_A = 0
    OPERAND_B = 1


class Routine(enum.IntEnum):
    SYMM = 1
    HEMM = 2
    SYRK = 3
    HERK = 4
    SYR2K = 5
    HER2K = 6
    GEMMTR = 7
    TRMM = 8
    TRSM = 9


class CFloat(ctypes.Structure):
    _fields_ = [("re", c_float), ("im", c_float)]


class CDouble(ctypes.Structure):
    _fields_ = [("re", c_double), ("im", c_double)]


class Scalar(ctypes.Union):
    _fields_ = [("s", c_float), ("d", c_double), ("c", CFloat), ("z", CDouble), ("device", c_void_p)]


class GemmDesc(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("layout", c_int),
        ("transa", c_int),
        ("transb", c_int),
        ("type_a", c_int),
        ("type_b", c_int),
        ("type_c", c_int),
        ("type_scalar", c_int),
        ("math", c_int),
        ("scalar_mode", c_int),
        ("epilogue", c_int),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("alpha", Scalar),
        ("beta", Scalar),
        ("a", c_void_p),
        ("lda", c_int64),
        ("b", c_void_p),
        ("ldb", c_int64),
        ("c", c_void_p),
        ("ldc", c_int64),
        ("batch_count", c_int64),
        ("stride_a", c_int64),
        ("stride_b", c_int64),
        ("stride_c", c_int64),
        ("bias_per", c_int),
        ("type_bias", c_int),
        ("bias", c_void_p),
        ("stride_bias", c_int64),
        ("residual", c_void_p),
        ("ld_residual", c_int64),
        ("stride_residual", c_int64),
        ("out_scale", c_double),
        ("column_sums", c_void_p),
        ("stride_column_sums", c_int64),
        ("packed_a", c_void_p),
        ("packed_b", c_void_p),
    ]


DESC_BYTES = ctypes.sizeof(GemmDesc)
BASE_DESC_BYTES = GemmDesc.bias_per.offset  # of the first version, which most calls get along with

# The first version of GemmDesc again, as a struct format per element type: packing all fields at once into a fresh bytes object takes a quarter of
# the time of setting them one by one, and leaves nothing shared between threads or re-entrant calls. A scalar is always two
# numbers here: a real one has an imaginary part that nobody reads. "=", for a struct without padding, and because "@" would
# turn a scalar too large for a float into infinity instead of an OverflowError.
DESC_FORMAT = {
    kind: struct.Struct(f"=Q10i3q{scalar}{scalar}QqQqQq4q")
    for kind, scalar in zip(Type, ("ff8x", "dd", "ff8x", "dd", "ff8x", "ff8x"))
}

# What stands behind the first version: the epilogue, then two packed operands.
REST_FORMAT = struct.Struct("=2iQqQqqdQq2Q")


class GroupedDesc(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("layout", c_int),
        ("transa", c_int),
        ("transb", c_int),
        ("type_a", c_int),
        ("type_b", c_int),
        ("type_c", c_int),
        ("type_scalar", c_int),
        ("math", c_int),
        ("ragged", c_int),
        ("index_bytes", c_int),
        ("group_count", c_int64),
        ("offsets", c_void_p),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("m_array", c_void_p),
        ("n_array", c_void_p),
        ("k_array", c_void_p),
        ("alpha", Scalar),
        ("beta", Scalar),
        ("a", c_void_p),
        ("lda", c_int64),
        ("stride_a", c_int64),
        ("b", c_void_p),
        ("ldb", c_int64),
        ("stride_b", c_int64),
        ("c", c_void_p),
        ("ldc", c_int64),
        ("stride_c", c_int64),
        ("a_array", c_void_p),
        ("b_array", c_void_p),
        ("c_array", c_void_p),
        ("lda_array", c_void_p),
        ("ldb_array", c_void_p),
        ("ldc_array", c_void_p),
        ("epilogue", c_int),
        ("bias_per", c_int),
        ("type_bias", c_int),
        ("bias", c_void_p),
        ("stride_bias", c_int64),
        ("residual", c_void_p),
        ("ld_residual", c_int64),
        ("stride_residual", c_int64),
        ("out_scale", c_double),
    ]


class Level3Desc(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("routine", c_int),
        ("layout", c_int),
        ("side", c_int),
        ("uplo", c_int),
        ("transa", c_int),
        ("transb", c_int),
        ("diag", c_int),
        ("type", c_int),
        ("math", c_int),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("alpha", Scalar),
        ("beta", Scalar),
        ("a", c_void_p),
        ("lda", c_int64),
        ("b", c_void_p),
        ("ldb", c_int64),
        ("c", c_void_p),
        ("ldc", c_int64),
        ("batch_count", c_int64),
        ("stride_a", c_int64),
        ("stride_b", c_int64),
        ("stride_c", c_int64),
    ]


LEVEL3_DESC_BYTES = ctypes.sizeof(Level3Desc)
# As DESC_FORMAT: four types only.
LEVEL3_FORMAT: dict[int, struct.Struct] = {
    kind: struct.Struct(f"=Q9i4x3q{scalar}{scalar}QqQqQq4q") for kind, scalar in zip(Type, ("ff8x", "dd", "ff8x", "dd"))
}

Logger = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_double)


class AutotuneStep(ctypes.Structure):
    _fields_ = [
        ("candidate", c_char_p),
        ("best", c_char_p),
        ("us", c_double),
        ("best_us", c_double),
        ("built_in_us", c_double),
        ("model", c_double),
        ("candidate_idx", c_int),
        ("n_candidates", c_int),
        ("n_survivors", c_int),
        ("round", c_int),
        ("elapsed_ms", c_double),
        ("budget_ms", c_double),
        ("noise", c_double),
    ]


AutotuneProgress = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.POINTER(AutotuneStep))


class AutotuneResult(ctypes.Structure):
    _fields_ = [
        ("before_us", c_double),
        ("after_us", c_double),
        ("n_candidates", c_int),
        ("n_measured", c_int),
        ("n_refused", c_int),
        ("is_better", c_int),
        ("is_interrupted", c_int),
        ("elapsed_ms", c_double),
        ("before", ctypes.c_char * 192),
        ("after", ctypes.c_char * 192),
    ]


class AutotuneOptions(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("device", c_int),
        ("is_exhaustive", c_int),
        ("budget_ms", c_double),
        ("seed", c_uint64),
        ("file", c_char_p),
        ("progress", AutotuneProgress),
        ("user", c_void_p),
        ("result", ctypes.POINTER(AutotuneResult)),
    ]


class KernelInfo(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("name", c_char_p),
        ("backend", c_char_p),
        ("family", c_char_p),
        ("type", c_int),
        ("is_usable", c_int),
        ("bm", c_int),
        ("bn", c_int),
        ("bk", c_int),
        ("coarse_factor", c_int),
        ("n_stages", c_int),
        ("n_threads", c_int),
        ("shared_bytes", c_int),
        ("cluster", c_int),
        ("cluster_splits", c_int),
        ("n_slices", c_int),
        ("has_split_k", c_int),
        ("is_ping_pong", c_int),
        ("is_fma", c_int),
        ("least_cc", c_int),
        ("most_cc", c_int),
    ]


_out_int = ctypes.POINTER(c_int)
_out_pointer = ctypes.POINTER(c_void_p)


def _typed_gemm(scalar: Any) -> tuple[Any, list[Any]]:
    sizes = [c_int64] * 3
    return c_int, [c_void_p, c_int, c_int, c_int, *sizes, scalar, c_void_p, c_int64, c_void_p, c_int64, scalar, c_void_p, c_int64]


def _level3(enums: int, sizes: int, operands: int, alpha: Any, beta: Any = None) -> tuple[Any, list[Any]]:
    """Of a typed call: `operands` matrices, the last one after beta if there is one."""
    matrix = [c_void_p, c_int64]
    before = [c_void_p, *[c_int] * enums, *[c_int64] * sizes, alpha, *matrix * (operands - 1)]
    return c_int, [*before, *([] if beta is None else [beta]), *matrix]


_SCALARS = {"s": c_float, "d": c_double, "c": CFloat, "z": CDouble}
_REALS = {"c": c_float, "z": c_double}
_LEVEL3: dict[str, tuple[Any, list[Any]]] = {}
for _letter, _scalar in _SCALARS.items():
    _LEVEL3[_letter + "symm"] = _level3(3, 2, 3, _scalar, _scalar)
    _LEVEL3[_letter + "syrk"] = _level3(3, 2, 2, _scalar, _scalar)
    _LEVEL3[_letter + "syr2k"] = _level3(3, 2, 3, _scalar, _scalar)
    _LEVEL3[_letter + "gemmtr"] = _level3(4, 2, 3, _scalar, _scalar)
    _LEVEL3[_letter + "trmm"] = _LEVEL3[_letter + "trsm"] = _level3(5, 2, 2, _scalar)
for _letter, _real in _REALS.items():
    _LEVEL3[_letter + "hemm"] = _LEVEL3[_letter + "symm"]
    _LEVEL3[_letter + "herk"] = _level3(3, 2, 2, _real, _real)
    _LEVEL3[_letter + "her2k"] = _level3(3, 2, 3, _SCALARS[_letter], _real)

# Name without "wsgemm_": (result, arguments). A descriptor goes in as bytes, and so as c_char_p.
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "status_name": (c_char_p, [c_int]),
    "status_text": (c_char_p, [c_int]),
    "last_error": (c_char_p, []),
    "create": (c_int, [_out_pointer]),
    "destroy": (c_int, [c_void_p]),
    "set_num_threads": (c_int, [c_void_p, c_int]),
    "get_num_threads": (c_int, [c_void_p, _out_int]),
    "set_num_threads_local": (c_int, [c_int]),
    "default_num_threads": (c_int, []),
    "set_policy": (c_int, [c_void_p, c_int]),
    "get_policy": (c_int, [c_void_p, _out_int]),
    "set_quantum": (c_int, [c_void_p, c_int]),
    "get_quantum": (c_int, [c_void_p, _out_int]),
    "set_coarse_factor": (c_int, [c_void_p, c_int]),
    "get_coarse_factor": (c_int, [c_void_p, _out_int]),
    "set_math": (c_int, [c_void_p, c_int]),
    "get_math": (c_int, [c_void_p, _out_int]),
    "set_kernel": (c_int, [c_void_p, c_char_p]),
    "set_stream": (c_int, [c_void_p, c_void_p]),
    "get_stream": (c_int, [c_void_p, _out_pointer]),
    "set_workspace": (c_int, [c_void_p, c_void_p, c_size_t]),
    "get_fallback_count": (c_int, [c_void_p, c_int, c_void_p]),
    "get_workspace_size": (c_int, [c_void_p, c_char_p, c_void_p]),
    "get_packed_size": (c_int, [c_void_p, c_char_p, c_int, c_void_p]),
    "prepack": (c_int, [c_void_p, c_char_p, c_int, c_void_p, c_size_t, _out_pointer]),
    "packed_destroy": (c_int, [c_void_p]),
    "set_check": (c_int, [c_void_p, c_int]),
    "get_check": (c_int, [c_void_p, _out_int]),
    "set_invariant": (c_int, [c_void_p, c_int]),
    "get_invariant": (c_int, [c_void_p, _out_int]),
    "set_devices": (c_int, [c_void_p, ctypes.POINTER(c_int), c_int]),
    "get_devices": (c_int, [c_void_p, ctypes.POINTER(c_int), c_int, _out_int]),
    "set_offload": (c_int, [c_void_p, c_int]),
    "get_offload": (c_int, [c_void_p, _out_int]),
    "set_pinned_limit": (c_int, [c_size_t]),
    "set_progress": (c_int, [c_void_p, Progress, c_void_p]),
    "set_logger": (c_int, [c_void_p, Logger, c_void_p]),
    "sgemm": _typed_gemm(c_float),
    "dgemm": _typed_gemm(c_double),
    "cgemm": _typed_gemm(CFloat),
    "zgemm": _typed_gemm(CDouble),
    "hgemm": _typed_gemm(c_float),
    "bgemm": _typed_gemm(c_float),
    "gemm": (c_int, [c_void_p, c_char_p]),
    "gemm_grouped": (c_int, [c_void_p, ctypes.POINTER(GroupedDesc)]),
    **_LEVEL3,
    "level3": (c_int, [c_void_p, c_char_p]),
    "level3_workspace_size": (c_int, [c_void_p, c_char_p, c_void_p]),
    "level3_explain": (c_size_t, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "autotune": (c_int, [c_void_p, c_char_p, ctypes.POINTER(AutotuneOptions)]),
    "level3_autotune": (c_int, [c_void_p, c_char_p, ctypes.POINTER(AutotuneOptions)]),
    "tuning_file": (c_size_t, [c_char_p, c_size_t]),
    "tuning_read": (c_size_t, [c_char_p, c_char_p, c_size_t]),
    "tuning_table": (c_size_t, [c_char_p, c_size_t]),
    "tuning_import": (c_int, [c_char_p, c_char_p, _out_int]),
    "tuning_clear": (c_int, [c_char_p]),
    "explain": (c_size_t, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "config": (c_size_t, [c_char_p, c_size_t]),
    "machine": (c_size_t, [c_char_p, c_size_t]),
    "version": (c_int, []),
    "version_string": (c_char_p, []),
    "kernel_count": (c_int, []),
    "kernel_name": (c_char_p, [c_int]),
    "kernel_backend": (c_char_p, [c_int]),
    "kernel_usable": (c_int, [c_int]),
    "get_kernel_info": (c_int, [c_int, ctypes.POINTER(KernelInfo)]),
}

_SYSTEM_NAMES = ("libwsgemm.so.0", "libwsgemm.so")


def _open() -> ctypes.CDLL:
    # ctypes.CDLL, not PyDLL: it releases the GIL for the length of every call.
    named = os.environ.get("WSGEMM_LIBRARY")
    if named:
        try:
            return ctypes.CDLL(named)
        except OSError as error:
            raise ImportError(f"WSGEMM_LIBRARY names {named!r}, which cannot be loaded: {error}") from error
    # An editable install has two folders: the sources' and the one that the library was built into.
    for folder in sys.modules[__package__].__path__:
        path = os.path.join(folder, "libwsgemm.so")
        if os.path.exists(path):
            return ctypes.CDLL(path)
    failures = []
    for name in _SYSTEM_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            failures.append(str(error))
    raise ImportError(
        "the wsgemm library is neither in the package's folder nor on the system's library path "
        f"({'; '.join(failures)}); set WSGEMM_LIBRARY to the path of libwsgemm.so"
    )


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, "wsgemm_" + name)
        except AttributeError as error:
            raise ImportError(f"{library._name} has no wsgemm_{name}: it is not a wsgemm library of this version") from error
        function.restype = result
        function.argtypes = arguments
    number = library.wsgemm_version()
    found = (number // 10000, number // 100 % 100)
    if found != API_VERSION:
        raise ImportError(
            f"{library._name} is wsgemm {found[0]}.{found[1]}, but this package needs {API_VERSION[0]}.{API_VERSION[1]}"
        )
    return library


library = _declared(_open())


def beside(name: str) -> str | None:
    """The path of a file that is built and installed beside the library; None: there is none."""
    folder = os.path.dirname(library._name)
    for path in [folder] if folder else sys.modules[__package__].__path__:
        path = os.path.join(os.path.realpath(path) if folder else path, name)
        if os.path.exists(path):
            return path
    return None


class WsgemmError(RuntimeError):
    """A call of the C library failed.

    Attributes:
        status: the library's status code (an int; named in wsgemm.h as WSGEMM_...).
    """

    status: int

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        # Without __init__, whose arguments are not those of BaseException, nor a derived class's those of this one.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class StaysHere:
    """Holds the address of something of the C library that is freed with it: a copy would have it freed twice, and in another
    process it means nothing."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a wsgemm {type(self).__name__} cannot be copied or pickled: it belongs to this process; make another one"
        )


why_stopped: list[Any] = []  # functions that raise what a progress function stopped this thread's call with


def check(status: int) -> None:
    """Raises WsgemmError if `status`, the answer of a call just made by this thread, is not SUCCESS."""
    if status:
        if status == Status.STOPPED:
            for raise_why in why_stopped:
                raise_why()
        name = library.wsgemm_status_name(status).decode()
        detail = library.wsgemm_last_error().decode(errors="replace") or library.wsgemm_status_text(status).decode()
        known = Status(status) if status in Status._value2member_map_ else status
        raise WsgemmError(known, f"{name}: {detail}")


def written(function: Any, *arguments: Any) -> bytes:
    """The text that one of the library's asking functions writes."""
    n_bytes = function(*arguments, None, 0) + 1
    while True:
        buffer = ctypes.create_string_buffer(n_bytes)
        needed = function(*arguments, buffer, n_bytes) + 1
        if needed <= n_bytes:
            return buffer.value
        n_bytes = needed  # the text grew in between: another thread changed a setting


def text(function: Any, *arguments: Any) -> dict[str, str]:
    """The "key: value" lines that one of the library's asking functions writes, as a dict in their order."""
    pairs: dict[str, str] = {}
    for line in written(function, *arguments).decode(errors="replace").splitlines():
        key, _, value = line.partition(":")
        key, value = key.strip(), value.strip()
        pairs[key] = f"{pairs[key]}\n{value}" if key in pairs else value
    return pairs
