"""Packed operands in products: what a Packed stands for, whether it fits the call, and its place in a descriptor.

A Record is the C library's record of one; a call holds it, so that closing the Packed meanwhile does no harm. What the form is,
the library knows; making it is left to _prepack.py.
"""

from __future__ import annotations

import weakref
from typing import Any

from . import _lib

_destroy = _lib.library.wsgemm_packed_destroy

_ORDERS = {int(_lib.Layout.ROW_MAJOR): "C", int(_lib.Layout.COL_MAJOR): "F"}


class Record(_lib.StaysHere):
    """A wsgemm_packed, which is freed with the last reference, and the memory that it speaks of.

    Attributes:
        pointer: the wsgemm_packed.
        foreign_memory: the memory, if its library orders its work otherwise than the array's does.
        layout: of the descriptors that it fits; None: any.
        own_loop: of a stack, how many matrices, and the step from one to the next.
    """

    __slots__ = ("pointer", "n_bytes", "memory", "foreign_memory", "layout", "own_loop", "__weakref__")

    def __init__(
        self,
        pointer: int | None,
        n_bytes: int,
        memory: Any,
        is_foreign: bool,
        layout: int | None,
        own_loop: tuple[int, int] | None,
    ) -> None:
        self.pointer = pointer
        self.n_bytes = n_bytes
        self.memory = memory
        self.foreign_memory = memory if is_foreign else None
        self.layout = layout
        self.own_loop = own_loop
        # Not at exit: daemon threads may still be multiplying then.
        weakref.finalize(self, _destroy, pointer).atexit = False


class Packed(_lib.StaysHere):
    """An array as an operand of many products, as prepack() makes it: given in the array's place.

    Attributes:
        array: what it was made of, and stands for.
        side: "a" or "b": the argument whose place it takes.
        nbytes: of its packed form; 0: it has none, and products with it are those with the array.

    It keeps the array, and the memory of the packed form until it is closed, by close() or at the end
    of a ``with`` block. Neither may change meanwhile. A closed one is refused in products. It can be
    neither copied nor pickled.
    """

    __slots__ = ("_array", "_side", "_trans", "_record", "_is_closed", "__weakref__")

    def __init__(self, array: Any, side: str, trans: int, record: Record | None) -> None:
        self._array = array
        self._side = side
        self._trans = trans
        self._record = record
        self._is_closed = False

    @property
    def array(self) -> object:
        return self._array

    @property
    def side(self) -> str:
        return self._side

    @property
    def nbytes(self) -> int:
        record = self._record
        return 0 if record is None else record.n_bytes

    def close(self) -> None:
        """Lets go of the packed form; calls under way still have it. Closing twice is allowed."""
        self._is_closed = True
        self._record = None

    def __enter__(self) -> Packed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<wsgemm.Packed {self._side}, {'closed' if self._is_closed else f'{self.nbytes} bytes'}>"

    def _record_for(self, side: str, trans: int) -> Record | None:
        record = self._record  # before the question: another thread may be closing it
        if self._is_closed:
            raise ValueError(f"{side} is a packed operand that was closed")
        if side != self._side:
            raise ValueError(f"{side} was packed as the operand {self._side}; pass side={side!r} to prepack()")
        if trans != self._trans:
            raise ValueError(f"{side} was packed with trans = {self._trans}, but is multiplied with {trans}")
        return record


def unpacked(x: Any, side: str, trans: int = 0) -> tuple[Any, Record | None]:
    """(the array that the argument is or stands for, what is packed of it)

    Raises:
        ValueError: it was packed as another operand.
    """
    return (x._array, x._record_for(side, trans)) if isinstance(x, Packed) else (x, None)


def with_records(desc: bytes, records: dict[str, Record]) -> bytes:
    """The descriptor, with the operands that are packed.

    Raises:
        ValueError: one does not fit it.
    """
    whole = _lib.GemmDesc.from_buffer_copy(desc.ljust(_lib.DESC_BYTES, b"\0"))
    if len(desc) < _lib.DESC_BYTES:
        whole.struct_bytes = _lib.DESC_BYTES
        whole.out_scale = 1
    for name, record in records.items():
        if record.layout not in (None, whole.layout):
            raise ValueError(
                f"{name} was packed for complex results in {_ORDERS[record.layout]!r} order, but this one is in "
                f"{_ORDERS[whole.layout]!r} order; pass that to prepack()"
            )
        setattr(whole, "packed_" + name, record.pointer)
    return bytes(whole)
