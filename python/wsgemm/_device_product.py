"""Products of device arrays: the stream, the result, and the descriptors of the calls.

A product runs on the current stream of the library that the result belongs to. Every other stream that an argument's library
works on waits for the product, and the product for it, so that to each library the product is a piece of its own work. Where a
library does not tell its stream (DLPack only, JAX), the call returns when the product is done.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _lib, _streams
from ._arrays import Kind, check_fits, kind_for, kind_of, needs_out, scalars_of
from ._device import Argument, View, argument, c_strides
from ._handle import Handle, on_stream
from ._layout import BatchPlan, may_overlap_itself
from ._product import Options, call, describe, gemm_shape, product_shapes


class Operands:
    """The device arrays of one call. None of it outlives the call."""

    def __init__(self, closing: ExitStack, a: Argument, b: Argument, out: Argument | None) -> None:
        self.closing = closing
        self.a, self.b, self.out = a, b, out
        given = [x for x in (a, b, out) if x is not None]
        self.maker = next((x for x in given if x.producer.is_known), None)  # of a result, if there is no out
        told = [x.stream for x in (out or self.maker, a, b) if x is not None and x.stream is not None]
        self.stream = told[0] if told else _streams.LEGACY
        self.others = sorted(set(told) - {self.stream})
        self.must_wait = any(x.is_lent for x in given)
        self.made: list[Argument] = []  # kept until the product is on its stream

    def view(self, x: Argument) -> View:
        return x.view(self.stream, self.closing)

    def empty(self, shape: tuple[int, ...]) -> Argument:
        """A new array for the result."""
        if self.maker is None:
            raise TypeError(
                f"a is a {_type_name(self.a.array)} and b a {_type_name(self.b.array)}, of libraries that wsgemm cannot ask for "
                "a new array; pass one to write to"
            )
        return self._fresh(self.maker, self.maker.producer.empty(self.maker.array, shape))

    def copy(self, x: Argument) -> Argument:
        return self._fresh(x, x.producer.copy(x.array))

    def _fresh(self, like: Argument, array: Any) -> Argument:
        made = argument(like.name, array)
        if made is None:
            raise TypeError(f"a new array like {like.name} does not lie on a GPU")
        self.made.append(made)
        return made

    def multiply(
        self,
        kind: Kind,
        a: View,
        op_a: Callable[[View], View],
        b: View,
        op_b: Callable[[View], View],
        out: Argument,
        full_out: View,
        options: Options,
        handle: Handle | None,
    ) -> Any:
        """out = alpha op_a(a) op_b(b) + beta out; op_a and op_b make matrices of the arrays, full_out is out as one."""
        if not full_out.is_empty:
            _check_writable(out, full_out)
            avoid = full_out if out is self.out else None
            full_a = self._readable(self.a, a, op_a, avoid)
            full_b = self._readable(self.b, b, op_b, avoid)
            conj_a, conj_b = options.conj_a != full_a.is_conjugated, options.conj_b != full_b.is_conjugated
            self._run(kind, full_a, full_b, full_out, options._replace(conj_a=conj_a, conj_b=conj_b), handle)
            out.producer.written(out.array)
        return out.given

    def _readable(self, x: Argument, view: View, op: Callable[[View], View], out: View | None) -> View:
        # What BLAS can read and shares no memory with out; copied by its library if need be.
        matrix = op(view)
        why = _why_copied(matrix, out)
        if not why:
            return matrix
        if not x.producer.is_known:
            raise ValueError(f"{x.name} {why}; make a contiguous copy of it first")
        return op(self.view(self.copy(x)))

    def _run(self, kind: Kind, a: View, b: View, out: View, options: Options, handle: Handle | None) -> None:
        k = a.shape[-1]
        device = _common_device({"out": out, "a": a, "b": b} if k else {"out": out})
        descs = describe(kind, _plan(a, b, out), k, options, (a.address, b.address, out.address))
        with on_stream(handle, self.stream) as pointer:
            for other in self.others:
                _streams.order(device, other, self.stream)
            try:
                call(descs, pointer)
            finally:  # of a stack, some products may be under way
                for other in self.others:
                    _streams.order(device, self.stream, other)
                if self.must_wait:
                    _streams.wait(device, self.stream)


def _common_device(views: dict[str, View]) -> int:
    devices = {name: _streams.device_of(view.address) for name, view in views.items()}
    for name, device in devices.items():
        if device < 0:
            raise _lib.WsgemmError(
                _lib.Status.INVALID_POINTER,
                f"WSGEMM_INVALID_POINTER: {name} is said to lie at {views[name].address:#x}, no GPU memory of this process",
            )
    if len(set(devices.values())) > 1:
        raise ValueError(", ".join(f"{name} lies on GPU {device}" for name, device in devices.items()) + "; all must be together")
    return devices["out"]


def _plan(a: View, b: View, out: View) -> BatchPlan:
    stack = out.shape[:-2]
    m, n = out.shape[-2:]
    k = a.shape[-1]
    assert out.strides is not None
    # k = 0: a and b have no elements, and any strides will do.
    strides_a = _broadcast(a, stack) if k else [0] * len(stack) + [1, 1]
    strides_b = _broadcast(b, stack) if k else strides_a
    plan = BatchPlan(m, n, max(k, 1), strides_a[-2:], strides_b[-2:], out.strides[-2:])
    if stack:
        plan.merge(stack, strides_a, strides_b, out.strides)
    return plan


def _broadcast(x: View, stack: tuple[int, ...]) -> list[int]:
    assert x.strides is not None
    steps = [0 if size == 1 else stride for size, stride in zip(x.shape[:-2], x.strides)]
    return [0] * (len(stack) - len(steps)) + steps + list(x.strides[-2:])


# ---- Where the arrays lie --------------------------------------------------------------------------------------------------


def _type_name(x: Any) -> str:
    return f"{type(x).__module__.split('.')[0]}.{type(x).__name__}"


def operands(closing: ExitStack, a: Any, b: Any, out: Any, out_name: str = "out", is_written: bool = True) -> Operands | None:
    """The arguments as device arrays; None if none of them is one.

    Raises:
        TypeError: some lie on a GPU and some do not.
    """
    given = {"a": a, "b": b, out_name: out}
    found = {name: argument(name, x, is_written and name == out_name) for name, x in given.items()}
    if not any(found.values()):
        return None
    if any(x is not None and found[name] is None for name, x in given.items()):
        places = (
            f"{name} lies {'on a GPU' if found[name] else 'in host memory'} ({_type_name(x)})"
            for name, x in given.items()
            if x is not None
        )
        raise TypeError(", ".join(places) + "; all must lie together")
    _streams.require_gpu_backend()
    on_a, on_b, on_out = found.values()
    assert on_a is not None and on_b is not None
    return Operands(closing, on_a, on_b, on_out)


def _check_out(out: Argument, view: View, a: View, shape: tuple[int, ...], product: str, is_written: bool = True) -> None:
    check_fits(view, a, shape, out.name, product)
    if is_written and out.producer.is_immutable:
        raise ValueError(f"{out.name} is a {_type_name(out.array)}, which cannot be written; leave {out.name} away")
    if is_written and view.is_readonly:
        raise ValueError(f"{out.name} is read-only")


def _check_writable(out: Argument, full: View) -> None:
    if not full.fits_blas or full.strides is None or may_overlap_itself(full.shape, full.strides):
        raise ValueError(
            f"{out.name} has shape {full.shape} and strides {full.strides} as a matrix, which BLAS cannot write; "
            "pass a contiguous array"
        )


def _why_copied(matrix: View, out: View | None) -> str:
    # What keeps an operand from being read where it lies; "": nothing.
    if not matrix.fits_blas:
        return f"has shape {matrix.shape} and strides {matrix.strides} as a matrix, which BLAS cannot express"
    if out is not None and _may_share(matrix, out):
        return "may share memory with the result"
    return ""


class _Address:
    """Lets NumPy compare extents. It never reads what lies there."""

    def __init__(self, x: View) -> None:
        assert x.strides is not None
        strides = tuple(stride * x.dtype.itemsize for stride in x.strides)
        self.__array_interface__ = {
            "version": 3, "typestr": x.dtype.str, "shape": x.shape, "strides": strides, "data": (x.address, False)
        }  # fmt: skip


def _may_share(x: View, y: View) -> bool:
    return bool(np.may_share_memory(np.asarray(_Address(x)), np.asarray(_Address(y)), max_work=1))  # type: ignore[arg-type]


# ---- matmul and gemm -------------------------------------------------------------------------------------------------------


class _Product(NamedTuple):
    a: View
    b: View
    kind: Kind
    options: Options
    shape: tuple[int, ...]  # of the result, as NumPy returns it
    is_row: bool  # a is 1-D
    is_column: bool  # b is 1-D

    def op_a(self, x: View) -> View:
        return x.insert(0) if self.is_row else x

    def op_b(self, x: View) -> View:
        return x.insert(1) if self.is_column else x

    def full(self, out: View) -> View:
        if self.is_column:
            out = out.insert(len(out.shape))
        return out.insert(len(out.shape) - 1) if self.is_row else out


def _checked(ops: Operands, alpha: Any, beta: Any) -> _Product:
    a, b = ops.view(ops.a), ops.view(ops.b)
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    if ops.out is None and beta != 0:
        raise needs_out(beta)
    shape = product_shapes(a.shape, b.shape).out
    return _Product(a, b, kind, Options(scalars, beta != 0), shape, len(a.shape) == 1, len(b.shape) == 1)


def matmul(ops: Operands, alpha: Any, beta: Any, handle: Handle | None) -> Any:
    """As wsgemm.matmul."""
    p = _checked(ops, alpha, beta)
    if ops.out is not None:
        out, view = ops.out, ops.view(ops.out)
        _check_out(out, view, p.a, p.shape, "a @ b")
    else:
        out = ops.empty(p.shape)
        view = ops.view(out)
    return ops.multiply(p.kind, p.a, p.op_a, p.b, p.op_b, out, p.full(view), p.options, handle)


def explain(ops: Operands, alpha: Any, beta: Any, handle: Handle | None) -> dict[str, str]:
    """As wsgemm.explain. Makes no array and no call."""
    p = _checked(ops, alpha, beta)
    if ops.out is not None:
        view = ops.view(ops.out)
        _check_out(ops.out, view, p.a, p.shape, "a @ b")
    else:
        view = View(p.a.dtype, p.shape, c_strides(p.shape), p.a.address)
    full = p.full(view)
    if full.is_empty:
        return {"calls": "0", "copies": ""}
    if ops.out is not None:
        _check_writable(ops.out, full)
    copies = []
    operands = {"a": p.op_a(p.a), "b": p.op_b(p.b)}
    for name, x in operands.items():
        if _why_copied(x, None if ops.out is None else full):
            copies.append(name)
            operands[name] = x._replace(strides=c_strides(x.shape))
    a, b = operands.values()
    options = p.options._replace(conj_a=a.is_conjugated, conj_b=b.is_conjugated)
    descs = list(describe(p.kind, _plan(a, b, full), a.shape[-1], options, (a.address, b.address, full.address)))
    with on_stream(handle, ops.stream) as pointer:
        answer = _lib.text(_lib.library.wsgemm_explain, pointer, descs[0])
    return {**answer, "calls": str(len(descs)), "copies": ", ".join(copies)}


def gemm(
    ops: Operands,
    letter: str | None,
    alpha: Any,
    beta: Any,
    trans_a: int,
    trans_b: int,
    overwrite_c: bool,
    handle: Handle | None,
) -> Any:
    """As wsgemm.gemm, or, with a letter, as the routine of this type."""
    a, b = ops.view(ops.a), ops.view(ops.b)
    kind = kind_for(letter, a, b)
    scalars = scalars_of(kind, alpha, beta)
    shape = gemm_shape(a.shape, b.shape, trans_a, trans_b)
    c = ops.out
    if c is None and beta != 0:
        raise ValueError(f"beta = {beta} needs c, the matrix that it scales")
    if c is not None:
        view = ops.view(c)
        _check_out(c, view, a, shape, "op(a) @ op(b)", overwrite_c)
    if c is None or not overwrite_c:
        c = ops.empty(shape) if c is None or beta == 0 else ops.copy(c)
        view = ops.view(c)
    options = Options(scalars, beta != 0, trans_a == 2, trans_b == 2)
    op_a, op_b = (View.transposed if trans_a else _as_it_is), (View.transposed if trans_b else _as_it_is)
    return ops.multiply(kind, a, op_a, b, op_b, c, view, options, handle)


def _as_it_is(x: View) -> View:
    return x
