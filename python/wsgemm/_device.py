"""Device arrays as arguments: which objects are such, and where in GPU memory their elements lie.

An object is one if it has ``__cuda_array_interface__`` (versions up to 3) or a DLPack device of type CUDA. Its interface is
preferred if that tells of streams, or if its library is known here to tell; else DLPack orders the streams. Nothing is copied
or converted. What a product does with the arrays is left to _device_product.py.
"""

from __future__ import annotations

import math
import operator
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from . import _dlpack
from ._layout import broadcast_strides, leading
from ._producers import Producer, producer_of
from ._streams import LEGACY

_STREAM_VERSION = 3  # of __cuda_array_interface__: the first that tells of streams
_ADDRESSES = 1 << 64
_MOST_BYTES = (1 << 63) - 1  # NumPy's limit for one array, and int64_t's


class View(NamedTuple):
    """Elements in memory, mostly of a GPU. Never a NumPy array: printing one would read the memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: they are no multiples of an element
    address: int
    is_readonly: bool = False
    is_conjugated: bool = False

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def fits_blas(self) -> bool:
        """Whether the last two dimensions (of two or more) are a matrix that BLAS can express, at an aligned address."""
        if self.is_empty:
            return True
        if self.strides is None or not self.is_aligned:
            return False
        return leading(*self.shape[-2:], *self.strides[-2:]) != 0

    def insert(self, axis: int) -> View:
        """With a dimension of size 1 more, at this place."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        strides = None if self.strides is None else (*self.strides[:axis], 0, *self.strides[axis:])
        return self._replace(shape=shape, strides=strides)

    def drop(self, axis: int) -> View:
        """Without a dimension of size 1."""
        at = axis % len(self.shape)
        strides = None if self.strides is None else (*self.strides[:at], *self.strides[at + 1 :])
        return self._replace(shape=(*self.shape[:at], *self.shape[at + 1 :]), strides=strides)

    def broadcast(self, stack: tuple[int, ...], n_axes: int = 2) -> View:
        """A stack of this shape, of what the last dimensions are."""
        n_own = len(self.shape) - n_axes
        if self.shape[:n_own] == stack:
            return self
        assert self.strides is not None
        strides = broadcast_strides(self.shape, self.strides, stack, n_axes)
        return self._replace(shape=(*stack, *self.shape[n_own:]), strides=strides)

    @property
    def is_aligned(self) -> bool:
        return self.address % (self.dtype.itemsize // (2 if self.dtype.kind == "c" else 1)) == 0

    @property
    def is_contiguous(self) -> bool:
        """In C order, whatever the strides of dimensions of size 1 are."""
        return self.strides is not None and all(
            stride == step or size == 1 for size, stride, step in zip(self.shape, self.strides, c_strides(self.shape))
        )

    def check_place(self, name: str) -> None:
        """Whatever is reckoned from it, addresses and steps, is a number that the library takes."""
        check_shape_fits(name, self.shape, self.dtype)
        strides, itemsize = self.strides or (), self.dtype.itemsize
        reach = [] if self.is_empty else [(size - 1) * stride * itemsize for size, stride in zip(self.shape, strides)]
        begin = self.address + sum(step for step in reach if step < 0)
        end = self.address + sum(step for step in reach if step > 0) + (0 if self.is_empty else itemsize)
        far = max((abs(stride) * itemsize for stride in strides), default=0)
        if begin < 0 or self.address >= _ADDRESSES or end > _ADDRESSES or max(far, end - begin) > _MOST_BYTES:
            raise ValueError(
                f"{name} lies at {self.address:#x} with shape {self.shape} and strides {self.strides}, beyond all memory"
            )

    def transposed(self) -> View:
        strides = None if self.strides is None else self.strides[::-1]
        return self._replace(shape=self.shape[::-1], strides=strides)


def check_shape_fits(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if math.prod(size for size in shape if size) * dtype.itemsize > _MOST_BYTES:
        raise ValueError(f"{name} has shape {shape} of {dtype.name}, which is more than all memory")


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class Argument:
    """A device array given to a product."""

    __slots__ = ("_interface", "array", "given", "name", "producer", "stream")

    def __init__(self, name: str, given: Any, array: Any, producer: Producer, interface: dict[str, Any] | None) -> None:
        self.name = name
        self.given = given
        self.array = array  # what is read or written: `given`, or an alias or copy of it
        self.producer = producer
        self._interface = interface
        stream = producer.stream(array)
        if stream is None and interface is not None:
            stream = _stream_of(name, interface)
        # Where its library's work on it is, and will be; None: it does not tell. 0 is the legacy default stream, as 1 is.
        self.stream = LEGACY if stream == 0 else stream

    @property
    def is_lent(self) -> bool:
        """Whether it comes through DLPack: it is ours only until the product is done, and then its library's on any stream."""
        return self._interface is None

    def view(self, stream: int, closing: ExitStack) -> View:
        """Where the elements lie; a product on the stream may use them until `closing` closes.

        Raises:
            TypeError: a mask, or an interface that makes no sense.
            ValueError: there is no memory of that extent.
        """
        if self._interface is not None:
            view = _read_interface(self.name, self._interface)
            view = view._replace(dtype=self.producer.dtype(self.array, view.dtype))
        else:
            loan = _dlpack.borrow(self.array, self.name, stream, closing)
            strides = c_strides(loan.shape) if loan.strides is None else loan.strides
            # What is written to a copy is lost.
            view = View(loan.dtype, loan.shape, strides, loan.address, loan.is_readonly or loan.is_copy)
        view.check_place(self.name)
        return view._replace(is_conjugated=self.producer.is_conjugated(self.array))


def argument(name: str, x: Any, is_output: bool = False) -> Argument | None:
    """x as a device array; None if it lies in host memory, as far as it tells."""
    if x is None or isinstance(x, np.ndarray):
        return None
    producer = producer_of(x)
    if not _lies_on_gpu(x, producer):
        return None
    given = x
    x = producer.prepare(x, name, is_output)
    interface = None if producer.is_immutable else producer.interface(x)
    if interface is not None and not producer.is_known and hasattr(x, "__dlpack__"):
        if not _tells_stream(name, interface):
            interface = None
    return Argument(name, given, x, producer, interface)


def check_mutable(x: Argument) -> None:
    if x.producer.is_immutable:
        raise ValueError(f"{x.name} is a {type_name(x.array)}, which cannot be written; leave {x.name} away")


def type_name(x: Any) -> str:
    return f"{type(x).__module__.split('.')[0]}.{type(x).__name__}"


def _lies_on_gpu(x: Any, producer: Producer) -> bool:
    is_cuda = getattr(x, "is_cuda", None) if producer.is_known else None  # torch tells its own
    if isinstance(is_cuda, bool):
        return is_cuda
    if not producer.is_immutable and producer.interface(x) is not None:
        return True
    return hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__") and _dlpack.lies_on_cuda(x)


def _makes_no_sense(name: str, why: object) -> TypeError:
    return TypeError(f"{name}.__cuda_array_interface__ makes no sense: {why}")


def _tells_stream(name: str, interface: dict[str, Any]) -> bool:
    version = interface.get("version", 0)
    if not isinstance(version, int):
        raise _makes_no_sense(name, f"version {version!r}")
    return version >= _STREAM_VERSION


def _stream_of(name: str, interface: dict[str, Any]) -> int:
    stream = interface.get("stream") if _tells_stream(name, interface) else None
    if stream is None:
        # There is nothing to wait for, but whoever reads the result, or writes an operand, does so later: where nothing is said,
        # on the default stream.
        return LEGACY
    if not hasattr(stream, "__index__") or not 0 <= operator.index(stream) < _ADDRESSES:
        raise _makes_no_sense(name, f"stream {stream!r}")
    if stream == 0:
        raise ValueError(f"{name}.__cuda_array_interface__ has stream 0, which may mean either default stream; 1 or 2 tell which")
    return operator.index(stream)


def _read_interface(name: str, interface: dict[str, Any]) -> View:
    if interface.get("mask") is not None:
        raise TypeError(f"{name} is a masked array, whose mask a product would ignore; fill it first")
    try:
        dtype = np.dtype(interface["typestr"])
        shape = tuple(map(operator.index, interface["shape"]))
        address, is_readonly = interface["data"]
        address = operator.index(address or 0)
        byte_strides = interface.get("strides")
        strides: tuple[int, ...] | None
        if byte_strides is None:
            strides = c_strides(shape)
        elif any(operator.index(stride) % dtype.itemsize for stride in byte_strides):
            strides = None
        else:
            strides = tuple(operator.index(stride) // dtype.itemsize for stride in byte_strides)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise _makes_no_sense(name, repr(error)) from error
    if min(shape, default=0) < 0 or (strides is not None and len(strides) != len(shape)):
        raise _makes_no_sense(name, f"shape {shape}, strides {byte_strides}")
    return View(dtype, shape, strides, address, bool(is_readonly))
