"""Plans: the short way of products that are made again and again, of arrays of torch and CuPy.

A plan is all of a product but where its arrays lie: the descriptor, the result's shape, what must hold of the addresses. It is
kept by what it was made of: shapes, strides, types, devices, alpha and beta. What has no plan (other libraries, copies, several
calls, nothing to do, errors) goes the long way through _device_product.py, which gives the same result by the same call.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Hashable
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from . import _device_product, _epilogue, _lib, _product, _streams
from ._arrays import Kind, address, dtype_of, kind_of, scalars_of
from ._device import View, c_strides
from ._dlpack import pointer_in
from ._epilogue import Epilogue, Result, Steps
from ._handle import Handle, default_handle, on_stream, pointer_of
from ._layout import may_overlap_itself
from ._product import Options, describe, product_shapes
from ._streams import LEGACY

_empty = np.empty
_MOST_PLANS = 4096
_PLACES = Struct("=QqQqQ")  # a, lda, b, ldb, c, as they stand in a descriptor
_BEGIN = _lib.GemmDesc.a.offset
_END = _BEGIN + _PLACES.size
_pack_places = _PLACES.pack
_BIAS = Struct("=Q")
_AT_BIAS = _lib.GemmDesc.bias.offset
_NUMBERS = frozenset((int, float))


class Plan(NamedTuple):
    head: bytes  # of the descriptor: what stands before the places of A, B and C, and behind them
    tail: bytes
    rest: bytes | None  # what stands behind the place of the bias, to which `tail` goes then; None: there is no bias
    lda: int
    ldb: int
    bytes_a: int  # extents
    bytes_b: int
    bytes_c: int
    misaligned: int  # bits that no address may have
    device: int
    arguments: tuple[Any, ...]  # of the library's function for a new array, for the result
    keywords: dict[str, Any]


New = Callable[[tuple[int, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def planned(
    a: View, b: View, out: View | None, alpha: complex, beta: complex, epilogue: Epilogue | None, new: New, device: int
) -> Plan | None:
    """The plan for arrays like these, whose addresses do not count; None: there is none. epilogue: an activation, and a View as its
    bias. new: the arguments that a new array of a shape is made with."""
    try:
        kind = kind_of(a, b)
        shapes = product_shapes(a.shape, b.shape)
        scalars = scalars_of(kind, alpha, beta)
    except (TypeError, ValueError, OverflowError):  # the long way says what is wrong
        return None
    if out is None and beta != 0:
        return None
    if out is None:
        out = View(a.dtype, shapes.out, c_strides(shapes.out), 0)
    if out.dtype != a.dtype or out.shape != shapes.out or a.is_empty or b.is_empty or out.is_empty:
        return None
    full_a = a.insert(0) if len(a.shape) == 1 else a
    full_b = b.insert(1) if len(b.shape) == 1 else b
    result = Result(out.dtype, shapes.out, shapes.full_out, len(a.shape) == 1, len(b.shape) == 1)
    full = result.full(out)
    if not (full_a.fits_blas and full_b.fits_blas and full.fits_blas) or full.strides is None:
        return None
    if may_overlap_itself(full.shape, full.strides) or any(min(x.strides or (), default=0) < 0 for x in (a, b, out)):
        return None  # backwards: the descriptor has other addresses than the arrays
    if epilogue is None:
        options = Options(scalars, beta != 0, kind, a.is_conjugated, b.is_conjugated)
        joined = _device_product._plan(full_a, full_b, full, (None, None))
        descs = list(describe(kind, joined, full_a.shape[-1], options, (0, 0, 0)))
    else:
        steps = _steps(kind, epilogue, result)
        if steps is None:
            return None
        descs = list(_epilogue.describe(kind, kind, full_a, full_b, full, scalars, steps))
    at_a, lda, at_b, ldb, at_c = _PLACES.unpack(descs[0][_BEGIN:_END])
    if len(descs) > 1 or at_a or at_b or at_c:
        return None
    has_bias = epilogue is not None and epilogue.bias is not None
    tail, rest = (descs[0][_END:_AT_BIAS], descs[0][_AT_BIAS + _BIAS.size :]) if has_bias else (descs[0][_END:], None)
    bytes_a, bytes_b, bytes_c = (_extent(x) for x in (full_a, full_b, full))
    unit = kind.itemsize // (2 if kind.is_complex else 1)
    return Plan(descs[0][:_BEGIN], tail, rest, lda, ldb, bytes_a, bytes_b, bytes_c, unit - 1, device, *new(shapes.out))


def _steps(kind: Kind, epilogue: Epilogue, result: Result) -> Steps | None:
    try:
        steps = _epilogue.steps_of(kind, epilogue)
        if epilogue.bias is None:
            return steps
        vectors, per = _epilogue.bias_vectors(epilogue.bias, result)
    except (TypeError, ValueError):
        return None
    return steps._replace(bias=vectors, bias_per=per) if _epilogue.can_be_read(vectors) else None


def _extent(x: View) -> int:
    assert x.strides is not None
    return x.dtype.itemsize * (1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.strides)))


_UNKNOWN: Any = object()


class Plans(dict[Hashable, Any]):
    """What was planned, by what matters of the arrays; None: there is no short way. All is forgotten when there is too much."""

    def keep(self, key: Hashable, plan: Any) -> Any:
        if len(self) >= _MOST_PLANS:
            self.clear()
        self[key] = plan
        return plan


class GroupPlan(NamedTuple):
    """Of a product of groups on a GPU, whose offsets lie there, too."""

    desc: bytes  # with addresses to be filled in
    bytes_a: int  # extents
    bytes_b: int
    bytes_c: int
    misaligned: int
    misaligned_ends: int
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def planned_groups(
    a: View, b: View, out: View | None, ends: View, alpha: complex, beta: complex, new: New, describe: Any
) -> GroupPlan | None:
    """As planned(); describe: _grouped.describe_groups."""
    views = [a, b, ends] if out is None else [a, b, ends, out]
    if any(x.is_empty or x.strides is None or min(x.strides) < 0 for x in views) or not ends.is_contiguous:
        return None
    try:
        kind, desc, shape = describe(a, b, out, ends, alpha, beta)
    except (TypeError, ValueError, OverflowError):  # the long way says what is wrong, or has something to copy
        return None
    of_c = out or View(a.dtype, shape, c_strides(shape), 0)
    if of_c.is_empty or (out is None and beta != 0) or may_overlap_itself(of_c.shape, of_c.strides or ()):
        return None
    unit = kind.itemsize // (2 if kind.is_complex else 1)
    bits = max(unit, of_c.dtype.itemsize // (2 if kind.is_complex else 1)) - 1
    return GroupPlan(bytes(desc), _extent(a), _extent(b), _extent(of_c), bits, ends.dtype.itemsize - 1, *new(shape))


def call_groups(plan: GroupPlan, a: int, b: int, c: int, ends: int, is_given: bool, pointer: int | None) -> bool:
    """As _call()."""
    if (a | b | c) & plan.misaligned or ends & plan.misaligned_ends:
        return False
    if is_given:
        end = c + plan.bytes_c
        if (a < end and c < a + plan.bytes_a) or (b < end and c < b + plan.bytes_b):
            return False
    desc = _lib.GroupedDesc.from_buffer_copy(plan.desc)
    desc.a, desc.b, desc.c, desc.offsets = a, b, c, ends
    status = _lib.library.wsgemm_gemm_grouped(pointer, ctypes.byref(desc))
    if status:
        _lib.check(status)
    return True


class Way:
    """The short way for the arrays of one library. What it cannot do is None."""

    name: str
    types: tuple[str, ...]  # the classes, by name
    is_in_c = False  # the short way is wsgemm._calls', with the plans of planned() below

    def __init__(self, module: Any) -> None:
        self.module = module
        self.plans = Plans()
        self.group_plans = Plans()

    def matmul(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None,
        bias: Any = None, activation: str | None = None, is_linear: bool = False,
    ) -> Any:  # fmt: skip
        """activation(alpha a b + beta out + bias); a is of this way's types. is_linear: all rows of a, by the transpose of b."""
        raise NotImplementedError

    def product(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, dtype: Any, epilogue: Epilogue | None, handle: Handle | None
    ) -> Any:
        """As wsgemm.matmul."""
        return self.matmul(a, b, out, alpha, beta, handle, None, None, False) if dtype is None and epilogue is None else None

    def planned(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, bias: Any, activation: str | None, is_linear: bool
    ) -> Plan | None:
        """The plan for what matmul() is given."""
        raise NotImplementedError

    def grouped(
        self, a: Any, b: Any, offsets: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None, describe: Any
    ) -> Any:
        """As wsgemm.grouped_matmul, of which describe() is, for a and offsets on a GPU; a is of this way's types."""
        return None

    def is_recorded(self, *given: Any) -> bool:
        """Whether the library is to know of what is done to such arrays: gradients, transforms."""
        return False

    def use_c(self, types: tuple[Any, Any], methods: Any, empty: Any, written: Any) -> None:
        """Has wsgemm._calls do what matmul() does, where that is built and knows these arrays."""
        module = _calls()
        if module is None:
            return
        gemm = ctypes.cast(_product._gemm, ctypes.c_void_p).value
        others = (_lib.check, pointer_of, on_stream, default_handle)
        try:
            self.short = module.Short(gemm, _MOST_PLANS, types, methods, _probe, address(_probe), self.planned, empty, written, *others)
        except AttributeError:  # of another release of theirs
            return
        self.is_in_c = True
        self.matmul = self.short.matmul  # type: ignore[method-assign]


_probe = np.zeros((3, 2))


@functools.cache
def _calls() -> Any:
    """The module of src/python; None: it is not there, or not for this Python."""
    path = _lib.beside("wsgemm_calls.abi3.so")
    if path is None or os.environ.get("WSGEMM_PYTHON_CALLS") == "off":
        return None
    name = f"{__package__}._calls"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError:
        return None
    return module


def _call(plan: Plan, a: int, b: int, c: int, bias: int, is_given: bool, pointer: int | None) -> bool:
    """Whether the addresses are such that there is nothing to copy; then the call is made. is_given: C is."""
    if (a | b | c | bias) & plan.misaligned:
        return False
    if is_given:
        end = c + plan.bytes_c
        if (a < end and c < a + plan.bytes_a) or (b < end and c < b + plan.bytes_b):
            return False
    desc = plan.head + _pack_places(a, plan.lda, b, plan.ldb, c) + plan.tail
    status = _product._gemm(pointer, desc if plan.rest is None else desc + _BIAS.pack(bias) + plan.rest)
    if status:
        _lib.check(status)
    return True


class TorchWay(Way):
    """Tensors, also in host memory. Their gradients are the caller's to see to."""

    name = "torch"
    types = ("Tensor", "nn.Parameter")

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.exact = tuple(found for found in (_attribute(module, name) for name in self.types) if found is not None)
        raw = _attribute(module, "_C._cuda_getCurrentRawStream")
        self.stream = raw or (lambda device: module.cuda.current_stream(device).cuda_stream)
        self.empty = module.empty_strided
        self.written = module.autograd.graph.increment_version
        self.operator: Any = None  # that torch knows of: with gradients, transforms, in compiled functions
        self.is_traced: Any = lambda: False
        if _attribute(module, "library.register_vmap") is not None:
            self.operator = importlib.import_module("wsgemm.torch").matmul
            compiling: Any = module.compiler.is_compiling
            transformed: Any = module._C._functorch.peek_interpreter_stack
            self.is_traced = lambda: compiling() or transformed() is not None
            self.use_c((self.exact[0], self.exact[-1]), (module.Tensor.is_neg, module.Tensor.is_conj), self.empty, self.note)

    def is_recorded(self, *given: Any) -> bool:
        return self.is_traced() or (self.module.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in given))

    def note(self, out: Any) -> None:
        """That it has been written."""
        if not out.is_inference():
            self.written(out)

    def matmul(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None,
        bias: Any = None, activation: str | None = None, is_linear: bool = False,
    ) -> Any:  # fmt: skip
        exact = self.exact
        if type(b) not in exact or type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS:
            return None
        try:
            key: Hashable
            at_bias = 0
            if out is None:
                key = (
                    a.shape, a.stride(), a.dtype, a.get_device(), a.is_conj(), a.is_neg(),
                    b.shape, b.stride(), b.dtype, b.get_device(), b.is_conj(), b.is_neg(), alpha, beta,
                )  # fmt: skip
            else:
                if type(out) not in exact or bias is not None:
                    return None
                key = (
                    a.shape, a.stride(), a.dtype, a.get_device(), a.is_conj(), a.is_neg(),
                    b.shape, b.stride(), b.dtype, b.get_device(), b.is_conj(), b.is_neg(), alpha, beta,
                    out.shape, out.stride(), out.dtype, out.get_device(), out.is_conj(), out.is_neg(),
                )  # fmt: skip
            if bias is not None:
                if type(bias) not in exact:
                    return None
                key = (key, bias.shape, bias.stride(), bias.dtype, bias.get_device(), bias.is_neg())
                at_bias = bias.data_ptr()
            if activation is not None or is_linear:
                key = (key, activation, is_linear)
            plan = self.plans.get(key, _UNKNOWN)
            if plan is _UNKNOWN:
                plan = self.plans.keep(key, self.planned(a, b, out, alpha, beta, bias, activation, is_linear))
            if plan is None:
                return None
            result = self.empty(*plan.arguments, **plan.keywords) if out is None else out
            at_a, at_b, at_c = a.data_ptr(), b.data_ptr(), result.data_ptr()
        except RuntimeError:  # a tensor without strides or memory: the long way says why
            return None
        if plan.device < 0:
            lent, pointer = None, None if handle is None else pointer_of(handle)
        else:
            lent = on_stream(handle, self.stream(plan.device) or LEGACY)
            pointer = lent.pointer
        if not _call(plan, at_a, at_b, at_c, at_bias, out is not None, pointer):
            return None
        if out is not None:
            self.note(out)
        return result

    def grouped(
        self, a: Any, b: Any, offsets: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None, describe: Any
    ) -> Any:
        given = (a, b, offsets) if out is None else (a, b, offsets, out)
        device = a.get_device()
        if type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS or not a.is_cuda:
            return None
        key: Hashable = (alpha, beta)
        for x in given:
            if type(x) not in self.exact or x.get_device() != device:
                return None
            key = (key, x.shape, x.stride(), x.dtype, device, x.is_conj(), x.is_neg())
        plan = self.group_plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = self.group_plans.keep(key, self.planned_groups(given, alpha, beta, describe))
        if plan is None:
            return None
        result = self.empty(*plan.arguments, **plan.keywords) if out is None else out
        lent = on_stream(handle, self.stream(device) or LEGACY)
        at_a, at_b, at_c, at_ends = a.data_ptr(), b.data_ptr(), result.data_ptr(), offsets.data_ptr()
        if not call_groups(plan, at_a, at_b, at_c, at_ends, out is not None, lent.pointer):
            return None
        if out is not None:
            self.note(out)
        return result

    def planned_groups(self, given: tuple[Any, ...], alpha: complex, beta: complex, describe: Any) -> GroupPlan | None:
        views = [self.view(x) for x in given]
        if any(view is None for view in views) or any(x.is_neg() or x.is_conj() for x in given):
            return None
        _streams.require_gpu_backend()
        keywords = {"dtype": given[0].dtype, "device": given[0].device}
        a, b, ends, out = [*views, None][:4]
        assert a is not None and b is not None and ends is not None
        return planned_groups(a, b, out, ends, alpha, beta, lambda shape: ((shape, c_strides(shape)), keywords), describe)

    def product(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, dtype: Any, epilogue: Epilogue | None, handle: Handle | None
    ) -> Any:
        if type(a) not in self.exact or type(b) not in self.exact:
            return None
        if self.is_traced() or ((a.requires_grad or b.requires_grad) and self.module.is_grad_enabled()):
            # torch is to know of the product; what its operator does not have, the long way refuses.
            is_plain = out is None and epilogue is None and dtype is None and handle is None and alpha == 1 and beta == 0
            return self.operator(a, b) if is_plain and self.operator is not None else None
        if epilogue is not None or dtype is not None or not a.is_cuda:
            return None
        if out is not None and (type(out) not in self.exact or out.requires_grad):
            return None
        return self.matmul(a, b, out, alpha, beta, handle, None, None, False)

    def planned(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, bias: Any, activation: str | None, is_linear: bool
    ) -> Plan | None:
        device, shape = a.get_device(), None
        if is_linear:
            if out is not None or b.dim() != 2 or not a.dim() or not a.numel():
                return None
            shape = (*a.shape[:-1], b.shape[0])
            try:
                a, b = a.view(-1, a.shape[-1]), b.mT
            except RuntimeError:  # no rows of one matrix
                return None
        given = {name: x for name, x in (("a", a), ("b", b), ("out", out), ("bias", bias)) if x is not None}
        if any(x.get_device() != device or not (x.is_cuda or x.is_cpu) or x.is_neg() for x in given.values()):
            return None
        views = {name: self.view(x) for name, x in given.items()}
        view_a, view_b, view_out, view_bias = (views.get(name) for name in ("a", "b", "out", "bias"))
        if None in views.values() or view_a is None or view_b is None or (out is not None and out.is_conj()):
            return None
        if device >= 0:
            _streams.require_gpu_backend()
        epilogue = None if bias is None and activation is None else Epilogue(activation, view_bias, None, 1, None)
        keywords = {"dtype": a.dtype, "device": a.device}

        def new(own: tuple[int, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return (shape or own, c_strides(shape or own)), keywords

        return planned(view_a, view_b, view_out, alpha, beta, epilogue, new, device)

    def view(self, x: Any) -> View | None:
        dtype = dtype_of(x.dtype)
        if dtype is None or x.layout != self.module.strided:
            return None
        return View(dtype, tuple(x.shape), tuple(x.stride()), 0, False, x.is_conj())


def _stream_function(module: Any) -> int:
    """Where the function is by which CuPy's own modules ask for the current stream, a tenth of the time of a Stream object; 0: there
    is none of that kind."""
    found: Any = (_attribute(module, "cuda.stream.__pyx_capi__") or {}).get("get_current_stream_ptr")
    return pointer_in(found, b"intptr_t (void)")


class CupyWay(Way):
    name = "cupy"
    types = ("ndarray",)

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.array = module.ndarray
        self.device = module.cuda.device.get_device_id
        current, at = module.cuda.get_current_stream, _stream_function(module)
        self.stream: Any = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(at) if at else lambda: current().ptr
        self.use_c((self.array, self.array), (self.name, self.device, at or current), self.array, None)

    def matmul(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None,
        bias: Any = None, activation: str | None = None, is_linear: bool = False,
    ) -> Any:  # fmt: skip
        if type(a) is not self.array or type(b) is not self.array or type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS:
            return None
        at_a, at_b, device = a.data, b.data, self.device()
        if at_a.device_id != device or at_b.device_id != device:  # a new array, and the current stream, would be another device's
            return None
        key: Hashable = (a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, alpha, beta)
        if out is not None:
            if type(out) is not self.array or out.data.device_id != device:
                return None
            key = (key, out.shape, out.strides, out.dtype)
        plan = self.plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = self.plans.keep(key, self.planned(a, b, out, alpha, beta, None, None, False))
        if plan is None:
            return None
        result = self.array(*plan.arguments) if out is None else out
        lent = on_stream(handle, self.stream() or LEGACY)
        return result if _call(plan, at_a.ptr, at_b.ptr, result.data.ptr, 0, out is not None, lent.pointer) else None

    def planned(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, bias: Any, activation: str | None, is_linear: bool
    ) -> Plan | None:
        views = [View(x.dtype, x.shape, _in_elements(x), 0) for x in (a, b, out) if x is not None]
        if any(view.strides is None for view in views):
            return None
        _streams.require_gpu_backend()
        return planned(views[0], views[1], views[2] if out is not None else None, alpha, beta, None, lambda own: ((own, a.dtype), {}), 0)


    def grouped(
        self, a: Any, b: Any, offsets: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None, describe: Any
    ) -> Any:
        given = (a, b, offsets) if out is None else (a, b, offsets, out)
        if type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS:
            return None
        key: Hashable = (alpha, beta)
        device = self.device()
        for x in given:
            if type(x) is not self.array or x.data.device_id != device:
                return None
            key = (key, x.shape, x.strides, x.dtype)
        plan = self.group_plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = self.group_plans.keep(key, self.planned_groups(given, alpha, beta, describe))
        if plan is None:
            return None
        result = self.array(*plan.arguments) if out is None else out
        lent = on_stream(handle, self.stream() or LEGACY)
        places = (a.data.ptr, b.data.ptr, result.data.ptr, offsets.data.ptr)
        return result if call_groups(plan, *places, out is not None, lent.pointer) else None

    def planned_groups(self, given: tuple[Any, ...], alpha: complex, beta: complex, describe: Any) -> GroupPlan | None:
        a, b, ends, out = [*(View(x.dtype, x.shape, _in_elements(x), 0) for x in given), None][:4]
        assert a is not None and b is not None and ends is not None
        _streams.require_gpu_backend()
        return planned_groups(a, b, out, ends, alpha, beta, lambda shape: ((shape, given[0].dtype), {}), describe)


class JaxWay(Way):
    """Plain products told to XLA: of arrays inside jax.jit, grad and vmap, which have no memory, and of those on a GPU, where XLA
    knows the stream."""

    name = "jax"
    types = ("core.Tracer", "Array")

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.tracer = _attribute(module, "core.Tracer")
        self.jitted: Any = None  # not asked for yet; False: there is none

    def product(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, dtype: Any, epilogue: Epilogue | None, handle: Handle | None
    ) -> Any:
        is_plain = out is None and epilogue is None and dtype is None and handle is None and alpha == 1 and beta == 0
        if self.tracer is not None and (isinstance(a, self.tracer) or isinstance(b, self.tracer)):
            if not is_plain:
                raise TypeError("of arrays that JAX has traced wsgemm computes a plain a @ b only; the rest is jax.numpy's to do")
            return importlib.import_module("wsgemm.jax").matmul(a, b)
        if not is_plain or not self.lie_on_one_gpu(a, b) or default_handle.kernel or default_handle.workspace is not None:
            return None
        if self.jitted is None:
            try:
                self.jitted = importlib.import_module("wsgemm.jax._functions").jitted()
            except (ImportError, AttributeError):  # not built, or an old release of JAX
                self.jitted = False
        return self.jitted(a, b) if self.jitted else None

    def lie_on_one_gpu(self, a: Any, b: Any) -> bool:
        if type(a) is not type(b) or not hasattr(a, "devices"):
            return False
        devices = a.devices()
        return len(devices) == 1 and next(iter(devices)).platform == "gpu" and b.devices() == devices


class NumpyWay(Way):
    """Arrays of NumPy themselves, in host memory."""

    name = "numpy"
    types = ("ndarray",)

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.use_c((np.ndarray, np.ndarray), None, _empty, None)

    def matmul(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, handle: Handle | None,
        bias: Any = None, activation: str | None = None, is_linear: bool = False,
    ) -> Any:  # fmt: skip
        if type(alpha) not in _NUMBERS or type(beta) not in _NUMBERS:
            return None
        key: Hashable
        if out is None:
            key = (a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, alpha, beta)
        else:
            if not out.flags.writeable:
                return None
            key = (a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype, alpha, beta, out.shape, out.strides, out.dtype)
        plan = self.plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = self.plans.keep(key, self.planned(a, b, out, alpha, beta, None, None, False))
        if plan is None:
            return None
        result = _empty(*plan.arguments) if out is None else out
        pointer = None if handle is None else pointer_of(handle)
        return result if _call(plan, address(a), address(b), address(result), 0, out is not None, pointer) else None

    def planned(
        self, a: Any, b: Any, out: Any, alpha: complex, beta: complex, bias: Any, activation: str | None, is_linear: bool
    ) -> Plan | None:
        views = [View(x.dtype, x.shape, _in_elements(x), 0) for x in (a, b, out) if x is not None]
        if any(view.strides is None for view in views) or a.ndim + b.ndim == 2:  # of which the result is a scalar
            return None
        return planned(views[0], views[1], views[2] if out is not None else None, alpha, beta, None, lambda own: ((own, a.dtype), {}), -1)


NUMPY = NumpyWay(np)


def _in_elements(x: Any) -> tuple[int, ...] | None:
    itemsize = x.dtype.itemsize
    return None if not itemsize or any(stride % itemsize for stride in x.strides) else tuple(stride // itemsize for stride in x.strides)


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


# ---- Which way -------------------------------------------------------------------------------------------------------------

_WAYS: tuple[type[Way], ...] = (TorchWay, CupyWay, JaxWay)
_found: dict[type[Any], Way] = {}


def way_of(x: Any) -> Way | None:
    """The short way for x, by its class itself: what is derived from it may be anything, but of JAX's classes one of them."""
    way = _found.get(type(x))
    if way is None or sys.modules.get(way.name) is not way.module:
        return _find(type(x))
    return way


def _find(kind: type[Any]) -> Way | None:
    for way in _WAYS:
        module = sys.modules.get(way.name)
        classes = [_attribute(module, name) for name in way.types]
        if kind in classes or (way is JaxWay and any(found is not None and issubclass(kind, found) for found in classes)):
            try:
                made = _found[kind] = way(module)
            except AttributeError:  # a release that lacks something: the long way knows others
                return None
            return made
    return None
