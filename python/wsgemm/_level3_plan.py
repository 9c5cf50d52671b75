"""Level 3 calls: from arrays to descriptors of the C library, in host memory and on GPUs.

Decides the memory order that a call works in, which operands are read where they lie and which are copied, and where the
result goes; a stack of matrices is as few calls as its steps allow. TRAITS says what tells the routines apart. What the
arguments of each routine mean is _level3.py's, what a descriptor does is the library's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from . import _device_product, _lib
from ._arrays import Array, Kind, Scalars, address, element_strides, may_share
from ._device import Argument, View
from ._device_product import Operands
from ._handle import Handle, pointer_of
from ._layout import broadcast_strides, may_overlap_itself, stack_calls
from ._product import call as call_gemm
from ._product import once

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


class Traits(NamedTuple):
    """What tells a routine from the others, for matrices of any type."""

    of_reals: _lib.Routine | None = None  # of a Hermitian one: what it is for real numbers
    is_in_place: bool = False  # the result takes b's place
    is_triangle: bool = False  # a triangle of the result is written
    is_rank_update: bool = False  # one op for both operands
    real: tuple[str, ...] = ()  # scalars that are
    has_op: str = ""  # operands that may be transposed and conjugated
    lies_as_result: str = ""  # operands that are in the result's memory order: no op or triangle stands for the other


TRAITS = {
    R.SYMM: Traits(lies_as_result="b"),
    R.HEMM: Traits(R.SYMM, lies_as_result="ab"),
    R.SYRK: Traits(is_triangle=True, is_rank_update=True),
    R.HERK: Traits(R.SYRK, is_triangle=True, is_rank_update=True, real=("alpha", "beta"), lies_as_result="a"),
    R.SYR2K: Traits(is_triangle=True, is_rank_update=True),
    R.HER2K: Traits(R.SYR2K, is_triangle=True, is_rank_update=True, real=("beta",), lies_as_result="ab"),
    R.GEMMTR: Traits(is_triangle=True, has_op="ab"),
    R.TRMM: Traits(is_in_place=True, has_op="a", lies_as_result="b"),
    R.TRSM: Traits(is_in_place=True, has_op="a", lies_as_result="b"),
}


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
    """What is asked for, of matrices of one kind; m, n, k as in the C interface. stack: how many of them, in each dimension."""

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
    stack: tuple[int, ...] = ()

    @property
    def traits(self) -> Traits:
        return TRAITS[self.routine]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        return (*self.stack, self.n if self.traits.is_triangle else self.m, self.n)

    @property
    def has_beta(self) -> bool:
        return bool(self.scalars[2] or self.scalars[3])


class Place(NamedTuple):
    """A matrix, or a stack of them, where it lies, in the order of the call unless it is flipped."""

    ld: int = 0
    address: int = 0
    is_flipped: bool = False
    strides: Sequence[int] = ()  # from one of the stack to the next, in each dimension

    def at(self, offset: int) -> int:
        """The address so many bytes further on, if there is one."""
        return self.address + offset if self.address else 0


def ld_as(shape: Sequence[int], strides: Sequence[int] | None, is_row: bool) -> int:
    """The leading dimension of a matrix (of each of a stack) as a row-major (column-major) one; 0: it is none."""
    lines, length = shape[-2:] if is_row else shape[:-3:-1]
    if 0 in shape:
        return max(length, 1)
    if strides is None:
        return 0
    step, unit = strides[-2:] if is_row else strides[:-3:-1]
    if (unit != 1 and length > 1) or (step < length and lines > 1):
        return 0
    return step if lines > 1 else length


# ---- Explaining ------------------------------------------------------------------------------------------------------------

explaining: ContextVar[dict[str, str] | None] = ContextVar("explaining", default=None)
"""Where a call that is only to be explained puts the answer, in place of its work."""


def _do(pointer: int | None, descs: list[bytes]) -> None:
    """The calls, or how the first of them would be done."""
    answer = explaining.get()
    if answer is None:
        for desc in descs:
            status = _level3(pointer, desc)
            if status:
                _lib.check(status)
        return
    answer.update(_lib.text(_lib.library.wsgemm_level3_explain, pointer, descs[0]) if descs else {})
    answer["calls"] = str(len(descs))


# ---- Memory ----------------------------------------------------------------------------------------------------------------


class Host:
    """NumPy arrays."""

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

    def fresh_orders(self, call: Call) -> tuple[bool, ...]:
        """Of a new result: column-major first, as SciPy's functions return it; of stacks C-ordered first, as matmul does."""
        return (True, False) if call.stack else (False, True)

    def copy(self, x: Array, is_row: bool) -> Array:
        return _flipped(np.array(_flipped(x, is_row), order="C", copy=True), is_row)

    def to_read(self, x: Array, is_row: bool) -> Array:
        """A copy, which need not be of x's shape where x is broadcast."""
        return self.copy(once(x), is_row)

    def empty(self, like: Array, shape: tuple[int, ...], is_row: bool) -> Array:
        return np.empty(shape, like.dtype) if is_row else _flipped(np.empty(_turned(shape), like.dtype), is_row)

    def cleared(self, like: Array, shape: tuple[int, ...], is_row: bool) -> Array:
        return np.zeros(shape, like.dtype) if is_row else _flipped(np.zeros(_turned(shape), like.dtype), is_row)

    def stand_in(self, x: Array) -> Array:
        """For an array to be written that BLAS cannot express: copied back at the end."""
        self.later.append((self.copy(x, False), x))
        return self.later[-1][0]

    def run(self, descs: list[bytes], used: dict[str, Array], result: Array) -> None:
        _do(self.pointer, descs)
        if explaining.get() is not None:
            return
        for source, target in self.later:
            np.copyto(target, source)


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


def _flipped(x: Array, is_row: bool) -> Array:
    # The matrices of a stack as columns of memory have them: a view.
    return x if is_row else x.swapaxes(-1, -2)


class OnDevice:
    """Device arrays, each an Argument and its View."""

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

    def fresh_orders(self, call: Call) -> tuple[bool, ...]:
        return (True,)

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

    to_read = copy

    def empty(self, like: tuple[Argument, View], shape: tuple[int, ...], is_row: bool) -> tuple[Argument, View]:
        made = self.ops.empty(shape[:-1] if self.is_vector else shape)
        view = self.ops.view(made)
        return made, view.insert(len(shape) - 1) if self.is_vector else view

    def cleared(self, like: tuple[Argument, View], shape: tuple[int, ...], is_row: bool) -> tuple[Argument, View]:
        made = self.empty(like, shape, is_row)
        if not made[1].is_empty:
            self.zeros += _device_product.zeros(made[1])
        return made

    def stand_in(self, x: tuple[Argument, View]) -> tuple[Argument, View]:
        raise ValueError(
            f"{x[0].name} has shape {x[1].shape} and strides {x[1].strides}, which BLAS cannot write; pass a contiguous array"
        )

    def run(self, descs: list[bytes], used: dict[str, tuple[Argument, View]], result: tuple[Argument, View]) -> None:
        def work(pointer: int | None) -> None:
            if self.zeros and explaining.get() is None:
                call_gemm(self.zeros, pointer)
            _do(pointer, descs)

        views = {name: view for name, (_, view) in used.items() if not view.is_empty}
        if views and descs:
            self.ops.run(views, self.handle, work, [result[0]])
        else:
            _do(None, [])


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
    traits = call.traits
    written = (b if traits.is_in_place else c) if overwrite else None
    target = written
    if written is not None and not _can_be_written(memory, written):
        target = memory.stand_in(written)
    orders = [x for x in (False, True) if _ld(memory, target, x)] if target is not None else list(memory.fresh_orders(call))
    rigid = [a if name == "a" else b for name in traits.lies_as_result]
    is_row = next((x for x in orders if all(_ld(memory, operand, x) for operand in rigid)), orders[0])
    source = b
    if target is not None:
        source = target if traits.is_in_place else b
    elif traits.is_in_place:
        if not _ld(memory, b, is_row) or memory.is_conjugated(b):
            source = memory.copy(b, is_row)
        is_whole = tuple(memory.layout(b)[0]) == call.shape
        target = source if source is not b and is_whole else memory.empty(b, call.shape, is_row)
    elif c is not None and (call.has_beta or traits.is_triangle):
        target = memory.copy(c, is_row)
    else:
        target = (memory.cleared if traits.is_triangle else memory.empty)(a, call.shape, is_row)
    avoid = None if written is None else target
    descs, used = _described(memory, call, a, source, target, is_row, avoid)
    memory.run(descs, used, target)
    return target if written is None else written


def _ld(memory: Any, x: Any, is_row: bool) -> int:
    shape, strides = memory.layout(x)
    return ld_as(shape, strides, is_row)


def _can_be_written(memory: Any, x: Any) -> bool:
    shape, strides = memory.layout(x)
    if not ld_as(shape, strides, False) and not ld_as(shape, strides, True):
        return False
    return len(shape) == 2 or 0 in shape or not may_overlap_itself(shape, strides or ())


def _placed(memory: Any, x: Any, stack: tuple[int, ...], is_row: bool, may_flip: bool, avoid: Any) -> tuple[Any, Place]:
    """(x, or a copy that can be read in this order and shares no memory with avoid; its place)"""
    ld = _ld(memory, x, is_row)
    flipped = 0 if ld or not may_flip else _ld(memory, x, not is_row)
    if not (ld or flipped) or (avoid is not None and memory.may_share(x, avoid)):
        x = memory.to_read(x, is_row)
        ld, flipped = _ld(memory, x, is_row), 0
    return x, Place(ld or flipped, memory.address(x), flipped != 0, _stack_strides(memory, x, stack) if stack else ())


def _stack_strides(memory: Any, x: Any, stack: tuple[int, ...]) -> Sequence[int]:
    shape, strides = memory.layout(x)
    return broadcast_strides(shape, strides or (0,) * len(shape), stack)


def _described(
    memory: Any, call: Call, a: Any, b: Any, target: Any, is_row: bool, avoid: Any
) -> tuple[list[bytes], dict[str, Any]]:
    """(the descriptors of the calls, what they read and write)"""
    traits, stack = call.traits, call.stack
    op_a, op_b, is_lower = call.op_a, call.op_b, call.is_lower
    steps = _stack_strides(memory, target, stack) if stack else ()
    place_b, place_c = Place(strides=(0,) * len(stack)), Place(_ld(memory, target, is_row), memory.address(target), False, steps)
    a, place_a = _placed(memory, a, stack, is_row, "a" not in traits.lies_as_result, avoid)
    used = {"out": target, "a": a}
    if place_a.is_flipped:  # what lies there is the transpose
        op_a = _FLIPPED[op_a]
        is_lower = is_lower == traits.is_triangle
    if traits.is_in_place and b is target:
        place_b, place_c = place_c, Place(strides=steps)
    elif b is not None:
        order_b = is_row != place_a.is_flipped if traits.is_rank_update else is_row  # a rank update has one op for both
        b, place_b = _placed(memory, b, stack, order_b, "b" in traits.has_op, None if traits.is_in_place else avoid)
        used["b"] = b
        if place_b.is_flipped:
            op_b = _FLIPPED[op_b]
    if memory.is_conjugated(a):
        _check_op(call, "a")
        op_a = _CONJUGATED[op_a]
    if b is not None and memory.is_conjugated(b):
        _check_op(call, "b")
        op_b = _CONJUGATED[op_b]
    layout = _lib.Layout.ROW_MAJOR if is_row else _lib.Layout.COL_MAJOR
    return list(_packed(call, (layout, op_a, op_b, is_lower), place_a, place_b, place_c)), used


def _check_op(call: Call, name: str) -> None:
    if name not in call.traits.has_op:
        raise TypeError(f"{call.routine.name.lower()} cannot read a conjugated view; pass what resolve_conj() gives")


_ALONE: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] = (1, 0, 0, 0), ((0, 0, 0),)


def _packed(call: Call, form: tuple[_lib.Layout, _lib.Op, _lib.Op, bool], a: Place, b: Place, c: Place) -> Iterator[bytes]:
    if 0 in call.shape:
        return
    layout, op_a, op_b, is_lower = form
    itemsize = call.kind.itemsize
    batch, offsets = stack_calls(call.stack, a.strides, b.strides, c.strides) if call.stack else _ALONE
    for in_a, in_b, in_c in offsets:
        yield _lib.LEVEL3_FORMAT[call.kind.code].pack(
            _lib.LEVEL3_DESC_BYTES, call.routine, layout, _lib.Side.RIGHT if call.is_right else _lib.Side.LEFT,
            _lib.Uplo.LOWER if is_lower else _lib.Uplo.UPPER, op_a, op_b,
            _lib.Diag.UNIT if call.is_unit else _lib.Diag.NON_UNIT, call.kind.code, _lib.Math.MATH_INHERIT,
            0 if call.traits.is_triangle else call.m, call.n, call.k, *call.scalars,
            a.at(in_a * itemsize), a.ld, b.at(in_b * itemsize), b.ld, c.at(in_c * itemsize), c.ld, *batch,
        )  # fmt: skip
