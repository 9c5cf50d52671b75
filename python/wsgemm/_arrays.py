"""NumPy arrays as arguments: which are accepted, what is said of the others, and where an array's elements lie.

Invariant: no array is converted to another type, silently or otherwise. What a product does with the arrays is left to
_product.py.
"""

from __future__ import annotations

import functools
import math
import numbers
import struct
import sys
from ctypes import c_void_p
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _lib
from ._layout import leading

Array = NDArray[Any]
Scalars = tuple[float, float, float, float]  # real and imaginary part of alpha, of beta


class Kind:
    """An element type: what a descriptor needs to know of it."""

    __slots__ = ("name", "code", "scalar_code", "is_complex", "is_half", "itemsize", "pack", "scalar", "safe")

    def __init__(self, code: _lib.Type, dtype: np.dtype[Any]) -> None:
        self.name = dtype.name
        self.code = int(code)
        self.is_half = code in (_lib.Type.F16, _lib.Type.BF16)
        self.scalar_code = int(_lib.Type.F32 if self.is_half else code)
        self.is_complex = dtype.kind == "c"
        self.itemsize = dtype.itemsize
        self.pack = _lib.DESC_FORMAT[code].pack
        self.scalar = np.finfo(np.float64 if code in (_lib.Type.F64, _lib.Type.C64) else np.float32)
        self.safe = 2.0 ** (self.scalar.maxexp - 1)  # numbers below it need no closer look


LETTERS: dict[str, np.dtype[Any]] = {
    "s": np.dtype("float32"),
    "d": np.dtype("float64"),
    "c": np.dtype("complex64"),
    "z": np.dtype("complex128"),
    "h": np.dtype("float16"),
}
# A byte-swapped dtype equals none of these.
KINDS = {dtype: Kind(code, dtype) for code, dtype in zip(_lib.Type, LETTERS.values())}
ACCEPTED = "float16, float32, float64, complex64 or complex128 in native byte order, or ml_dtypes' bfloat16"
# NumPy has no bfloat16. That of ml_dtypes is known by its name, so that nobody need import it; its mere bits are taken by bgemm alone.
BFLOAT16, BFLOAT16_BITS = "bfloat16", np.dtype("uint16")
_bits_kind = Kind(_lib.Type.BF16, BFLOAT16_BITS)
# In its place where elements are known to be such but ml_dtypes is not imported; NumPy appends the 16 to the name.
_stand_in: np.dtype[Any] = np.dtype((type("bfloat", (np.void,), {}), [("bits", BFLOAT16_BITS)]))

_ndarray = np.ndarray
_single = struct.Struct("=f")
_PLAIN_NUMBERS = frozenset((int, float))


# ---- Types, shapes, scalars ----------------------------------------------------------------------------------------------


class HasType(Protocol):
    """What the checks need of an array, wherever it lies."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def as_array(x: Any, name: str) -> Array:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask a product would ignore; fill it first")
    return np.asarray(x)


def _kind(dtype: np.dtype[Any]) -> Kind | None:
    if dtype not in KINDS and dtype.name == BFLOAT16 and dtype.itemsize == BFLOAT16_BITS.itemsize and dtype.isnative:
        return KINDS.setdefault(dtype, Kind(_lib.Type.BF16, dtype))  # one for all threads
    return KINDS.get(dtype)


def bfloat16() -> np.dtype[Any]:
    """For elements that are known to be bfloat16 by other means than their dtype."""
    known = getattr(sys.modules.get("ml_dtypes"), BFLOAT16, None)
    return _stand_in if known is None else np.dtype(known)


_NAMED = {dtype.name: dtype for dtype in map(np.dtype, ("?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"))}


def dtype_of(own: Any) -> np.dtype[Any] | None:
    """What a library means by a dtype of its own (torch.bfloat16, "float32", a class); None: nothing that has a name here."""
    if isinstance(own, np.dtype):
        return own
    name = (own.__name__ if isinstance(own, type) else str(own)).rpartition(".")[2]
    return bfloat16() if name == BFLOAT16 else _NAMED.get(name)


@functools.cache
def unknown_dtype(name: str, itemsize: int) -> np.dtype[Any]:
    """For elements that NumPy has no type for: good for nothing but to be counted, and to be named in a message."""
    return np.dtype((type(f"{name} as void", (np.void,), {}), itemsize))  # NumPy appends the bits


def kind_of(a: HasType, b: HasType) -> Kind:
    kind = _kind(a.dtype)
    other = _kind(b.dtype)
    if kind is not None and kind is other:
        return kind
    types = f"a is {_dtype_name(a)} and b is {_dtype_name(b)}"
    if kind is None or other is None:
        raise TypeError(f"{types}, but both must be {ACCEPTED}")
    raise TypeError(f"{types}, but they must be of one type; convert one with astype()")


def kind_of_operand(x: HasType, name: str) -> Kind:
    """Of what may be an operand of some routine."""
    kind = _bits_kind if x.dtype == BFLOAT16_BITS else _kind(x.dtype)
    if kind is None:
        raise TypeError(f"{name} is {_dtype_name(x)}, but it must be {ACCEPTED}")
    return kind


def kind_for(letter: str | None, a: HasType, b: HasType) -> Kind:
    """For the routine of one type; None: of any."""
    if letter is None:
        return kind_of(a, b)
    if letter == "b":
        if a.dtype == b.dtype == BFLOAT16_BITS:
            return _bits_kind
        is_right = a.dtype.name == b.dtype.name == BFLOAT16
    else:
        is_right = a.dtype == b.dtype == LETTERS[letter]
    if not is_right:
        takes = LETTERS.get(letter, "bfloat16, or its bits as uint16")
        raise TypeError(f"{letter}gemm takes {takes}, but a is {_dtype_name(a)} and b is {_dtype_name(b)}")
    return kind_of(a, b)


def check_letter(letter: str | None, kind: Kind, kind_c: Kind) -> None:
    """The routine of one type has its result in it, too."""
    if letter is not None and kind_c is not kind:
        raise TypeError(f"c is {kind_c.name}, but for {letter}gemm it must be {kind.name}; gemm takes both")


def _dtype_name(x: HasType) -> str:
    return x.dtype.name if x.dtype.isnative else f"{x.dtype.name} in swapped byte order"


def scalars_of(kind: Kind, alpha: Any, beta: Any) -> Scalars:
    """alpha and beta as the fields that kind.pack takes."""
    if type(alpha) in _PLAIN_NUMBERS and type(beta) in _PLAIN_NUMBERS:
        safe = kind.safe
        if (alpha == 1 and not beta) or (-safe < alpha < safe and -safe < beta < safe):
            return alpha, 0.0, beta, 0.0
    alpha, beta = number(kind, alpha, "alpha"), number(kind, beta, "beta")
    return alpha.real, alpha.imag, beta.real, beta.imag


def number(kind: Kind, x: Any, name: str, scalar: np.finfo[Any] | None = None) -> complex:
    """An argument of a product; scalar: its type, None: that of alpha and beta."""
    scalar = scalar or kind.scalar
    if isinstance(x, _ndarray) and x.ndim == 0:
        x = x[()]
    if isinstance(x, numbers.Real):
        return _real(scalar, x, name)
    if not isinstance(x, numbers.Complex):
        raise TypeError(f"{name} must be a number, not {type(x).__name__}")
    if not kind.is_complex:
        raise TypeError(f"{name} is complex, but a and b are {kind.name}")
    return complex(_real(scalar, x.real, name), _real(scalar, x.imag, name))


def _real(scalar: np.finfo[Any], x: Any, name: str) -> float:
    try:
        value = float(x)
        if scalar.bits == 32:
            _single.pack(value)  # would make it infinite, or raises
        is_beyond = math.isinf(value) and value != x  # a long double
    except OverflowError:
        is_beyond = True
    if is_beyond:
        raise OverflowError(f"{name} is beyond what a {scalar.dtype.name} holds")
    return value


def kind_of_result(kind: Kind, a: HasType, dtype: np.dtype[Any], name: str) -> Kind:
    """For a result of this type: that of the operands, or of half-precision ones any other half precision, or float32."""
    if dtype is a.dtype or dtype == a.dtype:
        return kind
    other = _kind(dtype) if kind.is_half else None
    if other is None or not (other.is_half or other.code == _lib.Type.F32):
        swapped = "" if dtype.isnative else " in swapped byte order"
        raise TypeError(f"{name} is {dtype.name}{swapped}, but a and b are {_dtype_name(a)}")
    return other


def needs_out(beta: complex) -> ValueError:
    """To be raised where beta != 0 and there is no out."""
    return ValueError(f"beta = {beta} needs out, the matrix that it scales")


def check_out(
    out: Any, kind: Kind, a: Array, shape: tuple[int, ...], name: str = "out", product: str = "a @ b", is_written: bool = True
) -> Kind:
    """The kind of the result."""
    if type(out) is not _ndarray and (not isinstance(out, _ndarray) or isinstance(out, np.ma.MaskedArray)):
        raise TypeError(f"{name} must be a NumPy array, not {type(out).__name__}")
    kind_c = kind if out.dtype is a.dtype else kind_of_result(kind, a, out.dtype, name)
    check_shape(out, shape, name, product)
    if is_written and not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    return kind_c


def check_shape(x: HasType, shape: tuple[int, ...], name: str, product: str) -> None:
    if x.shape != shape:
        raise ValueError(f"{name} has shape {x.shape}, but {product} has shape {shape}")


def type_of_result(kind: Kind, a: HasType, out: HasType | None, dtype: Any) -> tuple[np.dtype[Any], Kind]:
    """Of a new result, if there is no out; raises if the dtype that was asked for is not out's."""
    if dtype is None:
        return a.dtype, kind
    wanted = np.dtype(dtype)
    kind_c = kind_of_result(kind, a, wanted, "dtype")
    if out is not None and out.dtype != wanted:
        raise TypeError(f"dtype is {wanted.name}, but out is {_dtype_name(out)}")
    return wanted, kind_c


# ---- Memory --------------------------------------------------------------------------------------------------------------


def _address_told(x: Array) -> int:
    return int(x.__array_interface__["data"][0])


def _address_read(x: Array) -> int:
    return c_void_p.from_address(id(x) + _DATA_OFFSET).value or 0


# The data pointer follows the object's head in every NumPy array: it is part of NumPy's binary interface, which C extensions
# have compiled in. Reading it there takes an eighth of the time of asking __array_interface__, which a product does three times.
_DATA_OFFSET = object.__basicsize__
_probe = np.zeros(3)[1:]
address = (
    _address_read if sys.implementation.name == "cpython" and _address_read(_probe) == _address_told(_probe) else _address_told
)


def may_share(x: Array, y: Array) -> bool:
    """Whether the extents of two arrays meet."""
    return np.may_share_memory(x, y, max_work=1)  # type: ignore[arg-type]


def element_strides(x: Array) -> list[int] | None:
    """x's strides in elements; None if they are no multiples of an element, or x is not aligned to its type."""
    itemsize = x.itemsize
    if not x.flags.aligned:
        return None
    strides = []
    for stride in x.strides:
        if stride % itemsize:
            return None
        strides.append(stride // itemsize)
    return strides


def locate(x: Array, rows: int, cols: int) -> tuple[bool, int, int] | None:
    """(is row-major, leading dimension, address) of a rows x cols matrix that is not empty; None if BLAS cannot express it."""
    flags = x.flags
    if flags.aligned:
        if flags.c_contiguous:
            return True, cols, address(x)
        if flags.f_contiguous:
            return False, rows, address(x)
        strides = element_strides(x)
        if strides is not None:
            ld = leading(rows, cols, strides[0], strides[1])
            if ld:
                return ld > 0, abs(ld), address(x)
    return None
