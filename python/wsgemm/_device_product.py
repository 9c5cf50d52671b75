"""Products of device arrays: the stream, the result, and the descriptors of the calls.

A product runs on the current stream of the library that the result belongs to. Every other stream that an argument's library
works on waits for the product, and the product for it, so that to each library the product is a piece of its own work. Where a
library does not tell its stream (DLPack only, JAX), the call returns when the product is done.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _epilogue, _lib, _streams
from ._arrays import (
    KINDS,
    Kind,
    check_letter,
    check_shape,
    dtype_of,
    kind_for,
    kind_of,
    kind_of_result,
    needs_out,
    scalars_of,
    type_of_result,
)
from ._device import Argument, View, argument, c_strides, check_mutable, check_shape_fits, type_name
from ._epilogue import Epilogue, Result, Steps
from ._handle import Handle, on_stream
from ._layout import BatchPlan, OwnLoops, may_overlap_itself
from ._packed import Record, with_records
from ._product import Options, call, describe, gemm_shape, product_shapes

_get_workspace_size = _lib.library.wsgemm_get_workspace_size

_NOWHERE = 1 << 56  # beyond all memory: here and beyond lie the arrays that a product would make, where it is only asked about
_ALLOCATED, _ALIGNED = 256, 128  # GPU memory comes in as many bytes at least; those are enough for the library


class Operands:
    """The device arrays of one call. None of it outlives the call."""

    def __init__(
        self,
        closing: ExitStack,
        a: Argument,
        b: Argument,
        out: Argument | None,
        parts: dict[str, Argument | None],
        records: dict[str, Record] | None = None,
    ) -> None:
        """parts: what else is read and written. records: of the operands that are packed."""
        self.closing = closing
        self.a, self.b, self.out, self.parts = a, b, out, parts
        self.records = records or {}
        given = [x for x in (a, b, out, *parts.values()) if x is not None]
        self.maker = next((x for x in (a, b) if x.producer.is_known), None)  # of a result, if there is no out
        told = [x.stream for x in (out or self.maker, *given) if x is not None and x.stream is not None]
        self.stream = told[0] if told else _streams.LEGACY
        self.others = sorted(set(told) - {self.stream})
        self.must_wait = any(x.is_lent for x in given)
        self.made: list[Argument] = []  # kept until the product is on its stream
        self.n_pretended: int | None = None  # new arrays that were not made; None: they are made

    def view(self, x: Argument) -> View:
        return x.view(self.stream, self.closing)

    def empty(self, shape: tuple[int, ...], dtype: str | None = None) -> Argument:
        """A new array for the result, of the operands' type or the one of this name."""
        if self.maker is None:
            raise TypeError(
                f"a is a {type_name(self.a.array)} and b a {type_name(self.b.array)}, of libraries that wsgemm cannot ask for "
                "a new array; pass one to write to"
            )
        return self._fresh(self.maker, self.maker.producer.empty(self.maker.array, shape, dtype))

    def copy(self, x: Argument) -> Argument:
        if not x.producer.is_known:
            raise TypeError(
                f"{x.name} is a {type_name(x.array)}, of a library that wsgemm cannot ask for a copy to write to; write to "
                f"{x.name} itself (overwrite_c=1), or pass a copy of it"
            )
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
        epilogue: tuple[Epilogue, Result] | None,
        handle: Handle | None,
    ) -> Any:
        """out = alpha op_a(a) op_b(b) + beta out; op_a and op_b make matrices of the arrays, full_out is out as one."""
        views, descs = self.planned(kind, a, op_a, b, op_b, out, full_out, options, epilogue)
        if views:
            written = [x for name, x in (("out", out), ("column_sums", self.parts.get("column_sums"))) if x and name in views]
            self.run(views, handle, lambda pointer: call(descs, pointer), written)
        return out.given

    def planned(
        self,
        kind: Kind,
        a: View,
        op_a: Callable[[View], View],
        b: View,
        op_b: Callable[[View], View],
        out: Argument | None,
        full_out: View,
        options: Options,
        epilogue: tuple[Epilogue, Result] | None,
    ) -> tuple[dict[str, View], Iterable[bytes]]:
        """(what the calls of multiply() read and write, by name; their descriptors). Nothing to do: nothing. out = None: it would be
        made."""
        if out is not None and not full_out.is_empty:
            _check_writable(out, full_out)
        steps = None if epilogue is None else self._steps(kind, *epilogue, full_out)
        sums = None if steps is None else steps.column_sums
        if full_out.is_empty:
            return ({}, ()) if sums is None or sums.is_empty else ({"column_sums": sums}, zeros(sums))
        avoid = full_out if out is not None and out is self.out else None
        full_a = self._readable(self.a, a, op_a, avoid)
        full_b = self._readable(self.b, b, op_b, avoid)
        views = {"out": full_out, "a": full_a, "b": full_b} if full_a.shape[-1] else {"out": full_out}
        if steps is None:
            conj_a, conj_b = options.conj_a != full_a.is_conjugated, options.conj_b != full_b.is_conjugated
            options = options._replace(conj_a=conj_a, conj_b=conj_b)
            addresses = (full_a.address, full_b.address, full_out.address)
            descs = describe(kind, _plan(full_a, full_b, full_out, self.own_loops), full_a.shape[-1], options, addresses)
        else:
            parts = {"bias": steps.bias, "residual": steps.residual, "column_sums": sums}
            views.update((name, x) for name, x in parts.items() if x is not None)
            _check_apart(views)
            scalars = options.scalars
            descs = _epilogue.describe(kind, options.kind_c, full_a, full_b, full_out, scalars, steps, self.own_loops)
        return views, self.described(descs)

    def _readable(self, x: Argument, view: View, op: Callable[[View], View], out: View | None) -> View:
        # What BLAS can read and shares no memory with out; copied by its library if need be.
        matrix = op(view)
        why = self.why_copied(x, matrix, out)
        return op(self.copied(x, why)) if why else matrix

    def why_copied(self, x: Argument, matrix: View, out: View | None) -> str:
        """What keeps an operand from being read where it lies; "": nothing."""
        why = ""
        if not matrix.fits_blas:
            why = f"has shape {matrix.shape} and strides {matrix.strides} as a matrix, which BLAS cannot express"
        elif out is not None and may_share(matrix, out):
            why = _SHARED
        if why and x.name in self.records:
            raise ValueError(f"{x.name} is packed, but {why}")
        return why

    @property
    def own_loops(self) -> OwnLoops:
        """Of operands that are packed as stacks."""
        a, b = (self.records[name].own_loop if name in self.records else None for name in "ab")
        return a, b

    def described(self, descs: Iterable[bytes]) -> Iterable[bytes]:
        """The descriptors, with the operands that are packed."""
        return (with_records(desc, self.records) for desc in descs) if self.records else descs

    def copied(self, x: Argument, why: str) -> View:
        if not x.producer.is_known:
            raise ValueError(f"{x.name} {why}; make a contiguous copy of it first")
        if self.n_pretended is not None:
            view = self.view(x)
            return self.pretended(view.dtype, view.shape)
        return self.view(self.copy(x))

    def pretended(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> View:
        """Stands for a new array, which is not made. The library is only asked about it: see _with_places."""
        self.n_pretended = (self.n_pretended or 0) + 1
        return View(dtype, shape, c_strides(shape), self.n_pretended * _NOWHERE)

    def _steps(self, kind: Kind, epilogue: Epilogue, result: Result, out: View) -> Steps:
        # The epilogue as the library can read it; what it cannot is copied as operands are, unless there is nothing to do.
        steps = _epilogue.steps_of(kind, epilogue)
        bias, residual, sums = (self.parts[name] for name in PARTS)
        if bias is not None:
            vectors, per = _epilogue.bias_vectors(self.view(bias), result)
            if not out.is_empty and not _epilogue.can_be_read(vectors):
                vectors, per = _epilogue.bias_vectors(self.copied(bias, "has no unit stride"), result)
            elif not out.is_empty and may_share(vectors, out):
                vectors, per = _epilogue.bias_vectors(self.copied(bias, _SHARED), result)
            steps = steps._replace(bias=vectors, bias_per=per)
        if residual is not None:
            view = self.view(residual)
            _epilogue.check_residual(view, result)
            steps = steps._replace(residual=self._residual(residual, view, result, out))
        if sums is not None:
            view = self.view(sums)
            check_mutable(sums)
            _epilogue.check_sums(view, result)
            if not (view.is_contiguous and view.is_aligned):
                raise ValueError(f"column_sums has shape {view.shape} and strides {view.strides}; pass a contiguous array")
            *stack, _, n = result.full_shape
            shape = (*stack, n)
            steps = steps._replace(column_sums=view._replace(shape=shape, strides=c_strides(shape)))
        return steps

    def _residual(self, residual: Argument, view: View, result: Result, out: View) -> View:
        full = result.full(view)
        if out.is_empty or (full.address == out.address and _steps_alike(full, out)):
            return out
        is_row = _epilogue.is_by_rows(out)
        if not _epilogue.lies_as(full, is_row):
            full = result.full(self.copied(residual, "does not lie by rows, or by columns, as the result does"))
        elif may_share(full, out):
            full = result.full(self.copied(residual, _SHARED))
        if not _epilogue.lies_as(full, is_row):
            raise ValueError("residual does not lie by columns, as out does; pass one that does")
        return full

    def run(
        self, views: dict[str, View], handle: Handle | None, work: Callable[[int | None], None], written: Iterable[Argument]
    ) -> None:
        """Work with a C handle, on what lies there, after what is on the streams of all, and before what comes after on them.
        written: by the work."""
        device = common_device(views)
        lent = on_stream(handle, self.stream)
        for other in self.others:
            _streams.order(device, other, self.stream)
        is_done = False
        try:
            work(lent.pointer)
            is_done = True
        finally:  # of a stack, some products may be under way
            self._leave(device, is_done, written)

    def _leave(self, device: int, is_done: bool, written: Iterable[Argument]) -> None:
        """All of it is tried, whatever fails: the GPU is using what is given back after this. Raises the first error, unless the
        work itself was not done: its error is the first."""
        errors = [_attempt(_streams.order, device, self.stream, other) for other in self.others]
        # A library whose stream does not come after the work must not go on before it.
        if self.must_wait or any(error is not None for error in errors):
            errors.append(_attempt(_streams.wait, device, self.stream))
        errors += [_attempt(x.producer.written, x.array) for x in written]
        first = next((error for error in errors if error is not None), None) if is_done else None
        errors.clear()
        try:
            if first is not None:
                raise first
        finally:
            del first  # its traceback has this frame, which would have it


def _attempt(step: Callable[..., None], *arguments: Any) -> BaseException | None:
    try:
        step(*arguments)
    except BaseException as error:
        return error
    return None


def common_device(views: dict[str, View]) -> int:
    devices = {name: _streams.device_of(view.address) for name, view in views.items()}
    for name, device in devices.items():
        if device < 0:
            raise _lib.WsgemmError(
                _lib.Status.INVALID_POINTER,
                f"WSGEMM_INVALID_POINTER: {name} is said to lie at {views[name].address:#x}, no GPU memory of this process",
            )
    if len(set(devices.values())) > 1:
        raise ValueError(", ".join(f"{name} lies on GPU {device}" for name, device in devices.items()) + "; all must be together")
    return next(iter(devices.values()))


def _plan(a: View, b: View, out: View, own_loops: OwnLoops) -> BatchPlan:
    stack = out.shape[:-2]
    m, n = out.shape[-2:]
    k = a.shape[-1]
    assert out.strides is not None
    # k = 0: a and b have no elements, and any strides will do.
    strides_a = strides_b = (*(0,) * len(stack), 1, 1)
    if k:
        strides_a, strides_b = (x.broadcast(stack).strides or () for x in (a, b))
    plan = BatchPlan(m, n, max(k, 1), strides_a[-2:], strides_b[-2:], out.strides[-2:], own_loops)
    if stack:
        plan.merge(stack, strides_a, strides_b, out.strides)
    return plan


def zeros(x: View) -> Iterable[bytes]:
    # What makes a contiguous x zero: the product of matrices without elements.
    plan = BatchPlan(1, math.prod(x.shape), 1, (1, 1), (1, 1), (math.prod(x.shape), 1))
    kind = KINDS[x.dtype]
    return describe(kind, plan, 0, Options((1, 0, 0, 0), False, kind), (0, 0, x.address))


# ---- Where the arrays lie --------------------------------------------------------------------------------------------------


PARTS = ("bias", "residual", "column_sums")


def arguments(given: dict[str, Any], written: Iterable[str]) -> dict[str, Argument | None] | None:
    """The arguments as device arrays, by name; None if none of them is one. written: the names of those that will be.

    Raises:
        TypeError: some lie on a GPU and some do not.
    """
    found = {name: argument(name, x, name in written) for name, x in given.items()}
    if not any(found.values()):
        return None
    if any(x is not None and found[name] is None for name, x in given.items()):
        places = (
            f"{name} lies {'on a GPU' if found[name] else 'in host memory'} ({type_name(x)})"
            for name, x in given.items()
            if x is not None
        )
        raise TypeError(", ".join(places) + "; all must lie together")
    _streams.require_gpu_backend()
    return found


def operands(
    closing: ExitStack,
    a: Any,
    b: Any,
    out: Any,
    out_name: str = "out",
    is_written: bool = True,
    epilogue: Epilogue | None = None,
    records: tuple[Record | None, Record | None] = (None, None),
) -> Operands | None:
    """The arguments as device arrays; None if none of them is one. records: of a and b, if they are packed.

    Raises:
        TypeError: some lie on a GPU and some do not.
    """
    given = {"a": a, "b": b, out_name: out}
    if epilogue is not None:
        given.update(bias=epilogue.bias, residual=epilogue.residual, column_sums=epilogue.column_sums)
    found = arguments(given, ("column_sums", out_name) if is_written else ("column_sums",))
    if found is None:
        return None
    on_a, on_b = found["a"], found["b"]
    assert on_a is not None and on_b is not None
    parts = {name: found.get(name) for name in PARTS}
    packed = {name: record for name, record in zip("ab", records) if record is not None}
    for name, record in packed.items():
        if record.foreign_memory is not None:  # its library must not give it away before the product is done
            parts["memory of " + name] = argument("memory", record.foreign_memory)
    return Operands(closing, on_a, on_b, found[out_name], parts, packed)


def check_device_out(
    out: Argument, view: View, kind: Kind, a: View, shape: tuple[int, ...], product: str, is_written: bool = True
) -> Kind:
    """The kind of the result."""
    kind_c = kind_of_result(kind, a, view.dtype, out.name)
    check_shape(view, shape, out.name, product)
    if is_written:
        check_mutable(out)
    if is_written and view.is_readonly:
        raise ValueError(f"{out.name} is read-only")
    return kind_c


def _check_apart(views: dict[str, View]) -> None:
    """The sums are written while the others may still be read, or after them."""
    sums = views.get("column_sums")
    for name, x in views.items():
        if sums is not None and name != "column_sums" and may_share(sums, x):
            raise ValueError(f"column_sums may share memory with {name}")


def _check_writable(out: Argument, full: View) -> None:
    if not full.fits_blas or full.strides is None or may_overlap_itself(full.shape, full.strides):
        raise ValueError(
            f"{out.name} has shape {full.shape} and strides {full.strides} as a matrix, which BLAS cannot write; "
            "pass a contiguous array"
        )


class _Address:
    """Lets NumPy compare extents. It never reads what lies there."""

    def __init__(self, x: View) -> None:
        assert x.strides is not None
        strides = tuple(stride * x.dtype.itemsize for stride in x.strides)
        self.__array_interface__ = {
            "version": 3, "typestr": x.dtype.str, "shape": x.shape, "strides": strides, "data": (x.address, False)
        }  # fmt: skip


def _steps_alike(x: View, y: View) -> bool:
    # Of one shape: whether the same elements have the same places.
    return x.strides is not None and all(
        size == 1 or step_x == step_y for size, step_x, step_y in zip(x.shape, x.strides, y.strides or ())
    )


_SHARED = "may share memory with the result"


def may_share(x: View, y: View) -> bool:
    if x.is_empty or y.is_empty:  # of which NumPy 1.22 takes no null address
        return False
    return bool(np.may_share_memory(np.asarray(_Address(x)), np.asarray(_Address(y)), max_work=1))  # type: ignore[arg-type]


# ---- matmul and gemm -------------------------------------------------------------------------------------------------------


class _Product(NamedTuple):
    a: View
    b: View
    kind: Kind
    options: Options
    result: Result

    def op_a(self, x: View) -> View:
        return x.insert(0) if self.result.is_row else x

    def op_b(self, x: View) -> View:
        return x.insert(1) if self.result.is_column else x


def _checked(ops: Operands, alpha: Any, beta: Any, dtype: Any = None) -> tuple[_Product, View | None]:
    """(the product, out)"""
    a, b = ops.view(ops.a), ops.view(ops.b)
    kind = kind_of(a, b)
    scalars = scalars_of(kind, alpha, beta)
    if ops.out is None and beta != 0:
        raise needs_out(beta)
    shapes = product_shapes(a.shape, b.shape)
    out = None if ops.out is None else ops.view(ops.out)
    known = dtype_of(dtype)
    result_dtype, kind_c = type_of_result(kind, a, out, dtype if known is None else known)
    if ops.out is not None and out is not None:
        kind_c = check_device_out(ops.out, out, kind, a, shapes.out, "a @ b")
        result_dtype = out.dtype
    check_shape_fits("the result", shapes.out, result_dtype)
    result = Result(result_dtype, shapes.out, shapes.full_out, len(a.shape) == 1, len(b.shape) == 1)
    return _Product(a, b, kind, Options(scalars, beta != 0, kind_c), result), out


def matmul(ops: Operands, dtype: Any, alpha: Any, beta: Any, epilogue: Epilogue | None, handle: Handle | None) -> Any:
    """As wsgemm.matmul."""
    p, view = _checked(ops, alpha, beta, dtype)
    out = ops.out
    if out is None or view is None:
        out = ops.empty(p.result.shape, None if p.options.kind_c is p.kind else p.result.dtype.name)
        view = ops.view(out)
    asked = None if epilogue is None else (epilogue, p.result)
    return ops.multiply(p.kind, p.a, p.op_a, p.b, p.op_b, out, p.result.full(view), p.options, asked, handle)


def explain(ops: Operands, alpha: Any, beta: Any, handle: Handle | None) -> dict[str, str]:
    """As wsgemm.explain. Makes no array and no call."""
    p, view = _checked(ops, alpha, beta)
    full = p.result.full(view or View(p.a.dtype, p.result.shape, c_strides(p.result.shape), p.a.address))
    if full.is_empty:
        return {"calls": "0", "copies": ""}
    if ops.out is not None:
        _check_writable(ops.out, full)
    copies = []
    operands = {"a": p.op_a(p.a), "b": p.op_b(p.b)}
    for given, (name, x) in zip((ops.a, ops.b), operands.items()):
        if ops.why_copied(given, x, None if ops.out is None else full):
            copies.append(name)
            operands[name] = x._replace(strides=c_strides(x.shape))
    a, b = operands.values()
    options = p.options._replace(conj_a=a.is_conjugated, conj_b=b.is_conjugated)
    addresses = (a.address, b.address, full.address)
    descs = list(ops.described(describe(p.kind, _plan(a, b, full, ops.own_loops), a.shape[-1], options, addresses)))
    lent = on_stream(handle, ops.stream)
    answer = _lib.text(_lib.library.wsgemm_explain, lent.pointer, descs[0])
    return {**answer, "calls": str(len(descs)), "copies": ", ".join(copies)}


def workspace_size(ops: Operands, dtype: Any, alpha: Any, beta: Any, epilogue: Epilogue | None, handle: Handle | None) -> int:
    """As wsgemm.workspace_size. Makes no array and no call."""
    p, view = _checked(ops, alpha, beta, dtype)
    ops.n_pretended = 0
    if view is None:
        view = ops.pretended(p.result.dtype, p.result.shape)
    asked = None if epilogue is None else (epilogue, p.result)
    views, descs = ops.planned(p.kind, p.a, p.op_a, p.b, p.op_b, ops.out, p.result.full(view), p.options, asked)
    if not views or (ops.out is None and p.a.is_empty):
        return 0
    # Where arrays that are not made are said to lie tells the library the GPU. Not where one does: if that is the residual, it would
    # seem to be the result, of which a copy is kept.
    somewhere = next((x.address for x in (p.a, p.b, view) if not x.is_empty), 0) // _ALLOCATED * _ALLOCATED
    somewhere += _ALIGNED if any(x.address == somewhere for x in views.values()) else 0
    common_device({name: x._replace(address=_placed(x.address, somewhere)) for name, x in views.items()})
    size, n_bytes = ctypes.c_size_t(), 0
    lent = on_stream(handle, ops.stream)
    for desc in descs:
        _lib.check(_get_workspace_size(lent.pointer, _with_places(desc, somewhere), ctypes.byref(size)))
        n_bytes = max(n_bytes, size.value)
    return n_bytes


def _placed(address: int, somewhere: int) -> int:
    return address if address < _NOWHERE else somewhere + address % _ALIGNED


def _with_places(desc: bytes, somewhere: int) -> bytes:
    whole = _lib.GemmDesc.from_buffer_copy(desc.ljust(_lib.DESC_BYTES, b"\0"))
    for name in ("a", "b", "c", "bias", "residual", "column_sums"):
        setattr(whole, name, _placed(getattr(whole, name) or 0, somewhere))
    return bytes(whole)[: len(desc)]


def gemm(
    ops: Operands,
    letter: str | None,
    alpha: Any,
    beta: Any,
    trans_a: int,
    trans_b: int,
    overwrite_c: bool,
    epilogue: Epilogue | None,
    handle: Handle | None,
) -> Any:
    """As wsgemm.gemm, or, with a letter, as the routine of this type."""
    a, b = ops.view(ops.a), ops.view(ops.b)
    kind = kind_for(letter, a, b)
    scalars = scalars_of(kind, alpha, beta)
    shape = gemm_shape(a.shape, b.shape, trans_a, trans_b)
    c, kind_c = ops.out, kind
    if c is None and beta != 0:
        raise ValueError(f"beta = {beta} needs c, the matrix that it scales")
    if c is not None:
        view = ops.view(c)
        kind_c = check_device_out(c, view, kind, a, shape, "op(a) @ op(b)", overwrite_c)
        check_letter(letter, kind, kind_c)
    check_shape_fits("the result", shape, a.dtype)
    if c is None or not overwrite_c:
        c = ops.copy(c) if c and beta != 0 else ops.empty(shape, None if kind_c is kind else kind_c.name)
        view = ops.view(c)
    options = Options(scalars, beta != 0, kind_c, trans_a == 2, trans_b == 2)
    asked = None if epilogue is None else (epilogue, Result(view.dtype, shape, shape, False, False))
    op_a, op_b = (View.transposed if trans_a else _as_it_is), (View.transposed if trans_b else _as_it_is)
    return ops.multiply(kind, a, op_a, b, op_b, c, view, options, asked, handle)


def _as_it_is(x: View) -> View:
    return x
