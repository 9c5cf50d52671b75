"""Level 3 calls: from arrays to descriptors of the C library, in host memory and on GPUs.

Decides the memory order that a call works in, which operands are read where they lie and which are copied, and where the
result goes. What the arguments of each routine mean is _level3.py's, what a descriptor does is the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from . import _device_product, _lib
from ._arrays import Array, Kind, Scalars, address, element_strides, may_share
from ._device import Argument, View
from ._device_product import Operands
from ._handle import Handle, pointer_of

_level3 = _lib.library.wsgemm_level3
R = _lib.Routine
_FLIPPED = {
    _lib.Op.NO_TRANS: _lib.Op.TRANS,
    _lib.Op.TRANS: _lib.Op.NO_TRANS,
    _lib.Op.CONJ_TRANS: _lib.Op.CONJ_NO_TRANS,
    _lib.Op.CONJ_NO_TRANS: _lib.Op.CONJ_TRANS,
}
_CONJUGATED = {
    _lib.Op.NO_TRANS: _lib.Op.CONJ_NO_TRANS,
    _lib.Op.CONJ_NO_TRANS: _lib.Op.NO_TRANS,
    _lib.Op.TRANS: _lib.Op.CONJ_TRANS,
    _lib.Op.CONJ_TRANS: _lib.Op.TRANS,
}
TRIANGULAR = (R.TRMM, R.TRSM)
HERMITIAN = (R.HEMM, R.HERK, R.HER2K)
WRITES_TRIANGLE = (R.SYRK, R.HERK, R.SYR2K, R.HER2K, R.GEMMTR)


def choice(table: dict[Any, Any], value: Any, name: str, meaning: str) -> Any:
    """What the table has for an argument's value."""
    try:
        return table[value]
    except (KeyError, TypeError):
        raise ValueError(f"{name} is {value!r}, but it must be {meaning}") from None


def is_on_the_right(side: Any) -> bool:
    """Whether the structured matrix stands on the right of b."""
    sides = {0: False, "left": False, 1: True, "right": True}
    return bool(choice(sides, side, "side", "0 or 'left', or 1 or 'right'"))


class Call(NamedTuple):
    """What is asked for, of matrices of one kind; m, n, k as in the C interface."""

    routine: _lib.Routine
    kind: Kind
    scalars: Scalars
    m: int
    n: int
    k: int = 0
    is_right: bool = False
    is_lower: bool = False
    op_a: _lib.Op = _lib.Op.NO_TRANS
    op_b: _lib.Op = _lib.Op.NO_TRANS
    is_unit: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Of the result."""
        return (self.n, self.n) if self.routine in WRITES_TRIANGLE else (self.m, self.n)

    @property
    def has_beta(self) -> bool:
        return bool(self.scalars[2] or self.scalars[3])


class Place(NamedTuple):
    """A matrix where it lies, in the order of the call unless it is flipped."""

    ld: int
    address: int
    is_flipped: bool


def ld_as(shape: Sequence[int], strides: Sequence[int] | None, is_row: bool) -> int:
    """The leading dimension of a matrix as a row-major (column-major) one; 0: it is none."""
    if strides is None:
        return 0
    (lines, length), (step, unit) = (shape, strides) if is_row else (shape[::-1], strides[::-1])
    if lines == 0 or length == 0:
        return max(length, 1)
    if (unit != 1 and length > 1) or (step < length and lines > 1):
        return 0
    return step if lines > 1 else length


# ---- Memory ----------------------------------------------------------------------------------------------------------------


class Host:
    """NumPy arrays."""

    fresh_orders = (False, True)  # of a new result: column-major first, as SciPy's functions return it

    def __init__(self, handle: Handle | None) -> None:
        self.pointer = pointer_of(handle)
        self.later: list[tuple[Array, Array]] = []  # what is to be copied at the end, and to where

    def layout(self, x: Array) -> tuple[Sequence[int], Sequence[int] | None]:
        return x.shape, element_strides(x)

    def address(self, x: Array) -> int:
        return address(x) if x.size else 0

    def is_conjugated(self, x: Array) -> bool:
        return False

    def may_share(self, x: Array, y: Array) -> bool:
        return bool(x.size and y.size and may_share(x, y))

    def copy(self, x: Array, is_row: bool) -> Array:
        return np.array(x, order="C" if is_row else "F", copy=True)

    def empty(self, like: Array, shape: tuple[int, int], is_row: bool) -> Array:
        return np.empty(shape, like.dtype, order="C" if is_row else "F")

    def cleared(self, like: Array, shape: tuple[int, int], is_row: bool) -> Array:
        return np.zeros(shape, like.dtype, order="C" if is_row else "F")

    def stand_in(self, x: Array) -> Array:
        """For an array to be written that BLAS cannot express: copied back at the end."""
        self.later.append((self.copy(x, False), x))
        return self.later[-1][0]

    def run(self, desc: bytes, used: dict[str, Array], result: Array) -> None:
        status = _level3(self.pointer, desc)
        if status:
            _lib.check(status)
        for source, target in self.later:
            np.copyto(target, source)


class OnDevice:
    """Device arrays, each an Argument and its View."""

    fresh_orders = (True,)

    def __init__(self, ops: Operands, handle: Handle | None, is_vector: bool) -> None:
        """is_vector: b has one dimension, and so has the result."""
        self.ops = ops
        self.handle = handle
        self.is_vector = is_vector
        self.zeros: list[bytes] = []

    def layout(self, x: tuple[Argument, View]) -> tuple[Sequence[int], Sequence[int] | None]:
        view = x[1]
        return view.shape, view.strides if view.is_aligned else None

    def address(self, x: tuple[Argument, View]) -> int:
        return x[1].address if not x[1].is_empty else 0

    def is_conjugated(self, x: tuple[Argument, View]) -> bool:
        return x[1].is_conjugated

    def may_share(self, x: tuple[Argument, View], y: tuple[Argument, View]) -> bool:
        return _device_product.may_share(x[1], y[1])

    def copy(self, x: tuple[Argument, View], is_row: bool) -> tuple[Argument, View]:
        given, view = x
        if not is_row or not given.producer.is_known:
            raise ValueError(
                f"{given.name} has shape {view.shape} and strides {view.strides}, which this call cannot read where it lies; "
                "make a copy of it first that lies as the result does and shares no memory with it"
            )
        made = self.ops.copy(given)
        copied = self.ops.view(made)
        return made, copied if copied.shape == view.shape else copied.insert(1)  # of a vector

    def empty(self, like: tuple[Argument, View], shape: tuple[int, int], is_row: bool) -> tuple[Argument, View]:
        made = self.ops.empty(shape[:1] if self.is_vector else shape)
        view = self.ops.view(made)
        return made, view.insert(1) if self.is_vector else view

    def cleared(self, like: tuple[Argument, View], shape: tuple[int, int], is_row: bool) -> tuple[Argument, View]:
        made = self.empty(like, shape, is_row)
        if not made[1].is_empty:
            self.zeros += _device_product.zeros(made[1])
        return made

    def stand_in(self, x: tuple[Argument, View]) -> tuple[Argument, View]:
        raise ValueError(
            f"{x[0].name} has shape {x[1].shape} and strides {x[1].strides}, which BLAS cannot write; pass a contiguous array"
        )

    def run(self, desc: bytes, used: dict[str, tuple[Argument, View]], result: tuple[Argument, View]) -> None:
        def work(pointer: int | None) -> None:
            if self.zeros:
                _device_product.call(self.zeros, pointer)
            _lib.check(_level3(pointer, desc))

        views = {name: view for name, (_, view) in used.items() if not view.is_empty}
        if views:
            self.ops.run(views, self.handle, work, [result[0]])


def device_operands(closing: ExitStack, given: dict[str, Any], written: str | None) -> Operands | None:
    """The arguments as device arrays, of which a is one; None if none of them is one. written: the name of the one that is.

    Raises:
        TypeError: some lie on a GPU and some do not.
    """
    found = _device_product.arguments(given, () if written is None else (written,))
    if found is None:
        return None
    a = found["a"]
    assert a is not None
    b = found.get("b") or a
    return Operands(closing, a, b, found.get("c"), {})


# ---- The call --------------------------------------------------------------------------------------------------------------


def run(memory: Any, call: Call, a: Any, b: Any, c: Any, overwrite: bool) -> Any:
    """The routine, and what it is written to. overwrite: c, or for trmm and trsm b, is that."""
    triangular = call.routine in TRIANGULAR
    written = (b if triangular else c) if overwrite else None
    if call.routine in (R.HEMM, R.HERK, R.HER2K):
        rigid = [x for x in (a, b) if x is not None]
    else:
        rigid = [b] if triangular or call.routine == R.SYMM else []
    target = written
    if written is not None and not any(_ld(memory, written, is_row) for is_row in (False, True)):
        target = memory.stand_in(written)
    orders = [x for x in (False, True) if _ld(memory, target, x)] if target is not None else list(memory.fresh_orders)
    is_row = next((x for x in orders if all(_ld(memory, operand, x) for operand in rigid)), orders[0])
    source = b
    if target is None and triangular:
        if _ld(memory, b, is_row) and not memory.is_conjugated(b):
            target = memory.empty(b, call.shape, is_row)
        else:
            target = source = memory.copy(b, is_row)
    elif triangular:
        source = target
    elif target is None and c is not None and (call.has_beta or call.routine in WRITES_TRIANGLE):
        target = memory.copy(c, is_row)
    elif target is None:
        make = memory.cleared if call.routine in WRITES_TRIANGLE else memory.empty
        target = make(a, call.shape, is_row)
    avoid = None if written is None else target
    desc, used = _described(memory, call, a, source, target, is_row, avoid)
    memory.run(desc, used, target)
    return target if written is None else written


def _ld(memory: Any, x: Any, is_row: bool) -> int:
    return ld_as(*memory.layout(x), is_row)


def _placed(memory: Any, x: Any, is_row: bool, may_flip: bool, avoid: Any) -> tuple[Any, Place]:
    """(x, or a copy that can be read in this order and shares no memory with avoid; its place)"""
    ld = _ld(memory, x, is_row)
    flipped = 0 if ld or not may_flip else _ld(memory, x, not is_row)
    if not (ld or flipped) or (avoid is not None and memory.may_share(x, avoid)):
        x = memory.copy(x, is_row)
        ld, flipped = _ld(memory, x, is_row), 0
    return x, Place(ld or flipped, memory.address(x), bool(flipped))


def _described(
    memory: Any, call: Call, a: Any, b: Any, target: Any, is_row: bool, avoid: Any
) -> tuple[bytes, dict[str, Any]]:
    routine, op_a, op_b, is_lower = call.routine, call.op_a, call.op_b, call.is_lower
    triangular = routine in TRIANGULAR
    used = {"out": target}
    place_b = Place(0, 0, False)
    a, place_a = _placed(memory, a, is_row, routine not in HERMITIAN, avoid)
    used["a"] = a
    if place_a.is_flipped:  # what lies there is the transpose
        op_a = _FLIPPED[op_a]
        is_lower = is_lower != (routine not in WRITES_TRIANGLE)
    if b is not None and not (triangular and b is target):
        order_b = is_row != place_a.is_flipped if routine == R.SYR2K else is_row
        b, place_b = _placed(memory, b, order_b, routine == R.GEMMTR, None if triangular else avoid)
        used["b"] = b
        if place_b.is_flipped:
            op_b = _FLIPPED[op_b]
    if memory.is_conjugated(a) and (triangular or routine == R.GEMMTR):
        op_a = _CONJUGATED[op_a]
    elif memory.is_conjugated(a) or (b is not None and routine != R.GEMMTR and memory.is_conjugated(b)):
        raise TypeError(f"{routine.name.lower()} cannot read a conjugated view; pass what resolve_conj() gives")
    if routine == R.GEMMTR and memory.is_conjugated(b):
        op_b = _CONJUGATED[op_b]
    ld, at = _ld(memory, target, is_row), memory.address(target)
    if triangular:
        in_place = b is target
        place_b = Place(ld, at, False) if in_place else place_b
        place_c = Place(0, 0, False) if in_place else Place(ld, at, False)
    else:
        place_c = Place(ld, at, False)
    alpha, alpha_im, beta, beta_im = call.scalars
    desc = _lib.LEVEL3_FORMAT[_lib.Type(call.kind.code)].pack(
        _lib.LEVEL3_DESC_BYTES, routine, _lib.Layout.ROW_MAJOR if is_row else _lib.Layout.COL_MAJOR,
        _lib.Side.RIGHT if call.is_right else _lib.Side.LEFT, _lib.Uplo.LOWER if is_lower else _lib.Uplo.UPPER,
        op_a, op_b, _lib.Diag.UNIT if call.is_unit else _lib.Diag.NON_UNIT, call.kind.code, _lib.Math.MATH_INHERIT,
        0 if routine in WRITES_TRIANGLE else call.m, call.n, call.k, alpha, alpha_im, beta, beta_im,
        place_a.address, place_a.ld, place_b.address, place_b.ld, place_c.address, place_c.ld, 1, 0, 0, 0,
    )  # fmt: skip
    return desc, used

