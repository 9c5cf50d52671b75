"""prepack(): the form that the GPU's matrix units take an operand in, made once for many products.

The descriptor here must say of the operand what those of the products will say: pointer, leading dimension and op follow from the
array alone (_layout.leading), but of complex types also from the order of the result, and a stack must be gone through in one
loop. _packed.py sees to that in the products.
"""

from __future__ import annotations

import ctypes
import math
from contextlib import ExitStack
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from . import _lib, _streams
from ._arrays import Kind, as_array, kind_of_operand
from ._device import Argument, View, argument, check_mutable, type_name
from ._device_product import Operands, common_device, may_share
from ._handle import Handle, pointer_of
from ._layout import leading
from ._packed import Packed, Record
from ._product import BY_VALUE, COL_MAJOR, CONJUGATED, INHERIT, NO_EPILOGUE, NO_TRANS, ROW_MAJOR, TRANS

_get_packed_size, _prepack = _lib.library.wsgemm_get_packed_size, _lib.library.wsgemm_prepack

_SIDES = {"a": int(_lib.Operand.OPERAND_A), "b": int(_lib.Operand.OPERAND_B)}
_LAYOUTS = {"C": ROW_MAJOR, "F": COL_MAJOR}


def prepack(
    x: ArrayLike | Any,
    side: str = "b",
    *,
    trans: int = 0,
    order: str = "C",
    memory: Any = None,
    handle: Handle | None = None,
) -> Packed:
    """The packed form of an array on a GPU, as an operand of many products: pass what this returns in the
    array's place, to matmul or gemm.

    >>> import numpy as np
    >>> import wsgemm
    >>> weights, x = np.ones((3, 2)), np.ones((4, 3))
    >>> with wsgemm.prepack(weights, "b") as packed:
    ...     wsgemm.matmul(x, packed)[0]
    array([3., 3.])

    Large float32 and complex64 products on GPUs of compute capability 9.0 first cut their operands into
    slices; those of a packed one are there already. The bound of the error is the same. Products so
    small that slices would not pay may use them for a packed operand, and have other bits then.

    An array in host memory, of other types or sizes, on other GPUs, or for a handle whose products use
    no slices, has no packed form: what is returned stands for the array alone (nbytes = 0), so that the
    same program runs everywhere.

    Args:
        x: what matmul takes as an operand. It must not change while the packed form is in use. On a GPU
            it must be a matrix that BLAS can express, or a stack of them at equal steps. A stack is
            packed for products that go through it one matrix after the other, a 1-D array for those
            with it as a row (side "a") or column.
        side: "a" or "b": which operand of the products it is.
        trans: trans_a or trans_b of the products by gemm, which x is then given to as it is; 0 for
            matmul.
        order: of complex results: "C" (by rows, as those without `out` are), or "F" for an `out` by
            columns. Real ones may have any.
        memory: where the packed form goes: a contiguous array on x's GPU, of any type and library, of
            packed_size() bytes or more, aligned to 256 bytes. None: a new array of x's library, if that
            is torch, cupy or jax.
        handle: packed is for products of its numerics class; None: that of the process's default
            handle.

    The work goes on the current stream of the memory's library, in order with that of x's, as a
    product's does (see matmul). A product on another stream must come after it, and a captured graph
    needs the Packed as long as it is replayed.

    Raises:
        TypeError: x is of no type that is multiplied, or of a library that cannot be asked for memory.
        ValueError: x cannot be packed as it lies, or memory does not fit.
        WsgemmError: the library could not do it. WORKSPACE_TOO_SMALL: memory is; INVALID_VALUE: it is
            badly aligned.
    """
    pointer_of(handle)
    with ExitStack() as closing:
        array, operand = _asked(closing, x, side, trans, order, memory)
        n_bytes = 0 if operand is None else operand.n_bytes(handle)
        return Packed(array, side, trans, operand.pack(n_bytes, handle) if operand and n_bytes else None)


def packed_size(x: ArrayLike | Any, side: str = "b", *, trans: int = 0, order: str = "C", handle: Handle | None = None) -> int:
    """Bytes of memory that prepack() needs with the same arguments; 0: x has no packed form."""
    pointer_of(handle)
    with ExitStack() as closing:
        _, operand = _asked(closing, x, side, trans, order, None)
        return 0 if operand is None else operand.n_bytes(handle)


class _Operand(NamedTuple):
    """An array on a GPU, as the operand that is to be packed."""

    ops: Operands  # of x twice, and of the memory as what is written
    view: View
    desc: bytes
    side: str
    layout: int | None
    own_loop: tuple[int, int] | None

    def n_bytes(self, handle: Handle | None) -> int:
        common_device({"x": self.view})
        size = ctypes.c_size_t()
        _lib.check(_get_packed_size(pointer_of(handle), self.desc, _SIDES[self.side], ctypes.byref(size)))
        return size.value

    def pack(self, n_bytes: int, handle: Handle | None) -> Record:
        ops, x = self.ops, self.ops.a
        memory = ops.out or self._new_memory(n_bytes)
        view = ops.view(memory)
        if memory is ops.out:
            check_mutable(memory)
            if view.is_readonly:
                raise ValueError("memory is read-only")
        if not view.is_contiguous:
            raise ValueError(f"memory has shape {view.shape} and strides {view.strides}; pass a contiguous array")
        if may_share(view, self.view):
            raise ValueError("memory may share memory with x")
        n_given = math.prod(view.shape) * view.dtype.itemsize
        is_foreign = not memory.producer.is_known or type(memory.producer) is not type(x.producer)
        records = []

        def work(pointer: int | None) -> None:
            made = ctypes.c_void_p()
            _lib.check(_prepack(pointer, self.desc, _SIDES[self.side], view.address, n_given, ctypes.byref(made)))
            records.append(Record(made.value, n_bytes, memory.given, is_foreign, self.layout, self.own_loop))

        ops.run({"x": self.view, "memory": view}, handle, work, [memory])
        return records[0]

    def _new_memory(self, n_bytes: int) -> Argument:
        if self.ops.maker is None:
            raise TypeError(
                f"x is a {type_name(self.ops.a.array)}, of a library that wsgemm cannot ask for memory; pass {n_bytes} bytes"
            )
        return self.ops.empty((n_bytes,), "uint8")


def _asked(closing: ExitStack, x: Any, side: str, trans: int, order: str, memory: Any) -> tuple[Any, _Operand | None]:
    """(the array, what is to be packed; None: there is nothing on a GPU)"""
    if side not in _SIDES:
        raise ValueError(f"side is {side!r}, but it must be 'a' or 'b'")
    if order not in _LAYOUTS:
        raise ValueError(f"order is {order!r}, but it must be 'C' or 'F'")
    given = argument("x", x)
    if given is None:
        array = as_array(x, "x")
        kind_of_operand(array, "x")
        _check_shape(array.shape, trans)
        return array, None
    _streams.require_gpu_backend()
    into = argument("memory", memory, is_output=True)
    if memory is not None and into is None:
        raise TypeError(
            f"x lies on a GPU ({type_name(x)}), memory lies in host memory ({type_name(memory)}); both must lie together"
        )
    ops = Operands(closing, given, given, into, {})
    view = ops.view(given)
    kind = kind_of_operand(view, "x")
    _check_shape(view.shape, trans)
    matrix = view.insert(0 if side == "a" else 1) if len(view.shape) == 1 else view
    matrix = matrix.transposed() if trans else matrix
    if matrix.is_empty:
        return x, None
    if not matrix.fits_blas:
        raise ValueError(
            f"x has shape {matrix.shape} and strides {matrix.strides} as a matrix, which BLAS cannot express; pack a "
            "contiguous copy"
        )
    again = argument("x", x)
    if again is None or ops.view(again).address != view.address:  # a negated view of torch, or one that DLPack copies
        raise ValueError("x lies elsewhere every time that it is asked for; pack a copy")
    own_loop = _loop_of(matrix)
    is_conjugated = kind.is_complex and (trans == 2) != view.is_conjugated
    desc = _describe(kind, matrix, side, _LAYOUTS[order], is_conjugated, own_loop or (1, 0))
    return x, _Operand(ops, view, desc, side, _LAYOUTS[order] if kind.is_complex else None, own_loop)


def _check_shape(shape: tuple[int, ...], trans: int) -> None:
    if trans not in (0, 1, 2):
        raise ValueError(f"trans is {trans!r}, but it must be 0 (no), 1 (transpose) or 2 (conjugate transpose)")
    if not shape:
        raise ValueError("x has shape (), but needs at least one dimension")
    if trans and len(shape) != 2:
        raise ValueError(f"x has shape {shape}, but trans = {trans} takes a matrix")


def _loop_of(matrix: View) -> tuple[int, int] | None:
    """(how many matrices a stack has, the step from one to the next); None: one, or again and again the same"""
    assert matrix.strides is not None
    loop: tuple[int, int] | None = None
    for count, step in reversed(list(zip(matrix.shape[:-2], matrix.strides))):
        if count == 1 or step == 0:
            continue
        if step < 0 or (loop is not None and step != loop[0] * loop[1]):
            raise ValueError(
                f"x has shape {matrix.shape} and strides {matrix.strides}: its matrices do not follow at equal steps; pack a "
                "contiguous copy, or them apart"
            )
        loop = (count, step) if loop is None else (count * loop[0], loop[1])
    return loop


def _describe(kind: Kind, matrix: View, side: str, layout: int, is_conjugated: bool, loop: tuple[int, int]) -> bytes:
    """A product with one row, or column, of which the library looks at nothing but the operand."""
    assert matrix.strides is not None
    rows, cols = matrix.shape[-2:]
    ld = leading(rows, cols, *matrix.strides[-2:])
    op = NO_TRANS if (ld > 0) == (layout == ROW_MAJOR) else TRANS
    op = CONJUGATED[op] if is_conjugated else op
    count, step = loop
    at = (matrix.address, abs(ld))
    is_a = side == "a"
    m, n, k = (rows, 1, cols) if is_a else (1, cols, rows)
    return kind.pack(
        _lib.BASE_DESC_BYTES, layout, op if is_a else NO_TRANS, NO_TRANS if is_a else op,
        kind.code, kind.code, kind.code, kind.scalar_code, INHERIT, BY_VALUE, NO_EPILOGUE,
        m, n, k, 1, 0, 0, 0, *(at if is_a else (0, 0)), *((0, 0) if is_a else at), 0, 0,
        count, step if is_a else 0, 0 if is_a else step, 0,
    )  # fmt: skip
