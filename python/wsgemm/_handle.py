"""Handles: the settings of calls (threads, policy, COARSE_FACTOR, kernel rows, numerics, workspace), and num_threads().

A Handle owns one wsgemm_handle and frees it when the last reference goes, so that a call in flight on another thread keeps it
alive. The library holds the settings; only the names of forced kernel rows, which it does not give back, and the array
that is the workspace are kept here.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from . import _lib, _streams
from ._device import argument, check_mutable, type_name

_set_workspace = _lib.library.wsgemm_set_workspace

POLICIES = {policy.name[len("POLICY_") :].lower(): policy for policy in _lib.Policy}
MATHS = {math.name[len("MATH_") :].lower(): math for math in _lib.Math if math is not _lib.Math.MATH_INHERIT}
OFFLOADS = {when.name[len("OFFLOAD_") :].lower(): when for when in _lib.Offload}
_INT_MAX = 2**31 - 1


def _c_int(value: Any, name: str) -> int:
    number = operator.index(value)
    if not -_INT_MAX <= number <= _INT_MAX:
        raise ValueError(f"{name} is {number}, beyond any sensible number")
    return number


def _choice(table: dict[str, Any], value: str, name: str) -> int:
    if value not in table:
        raise ValueError(f"{name} is {value!r}, but it must be one of {', '.join(map(repr, table))}")
    return int(table[value])


def _name_of(table: dict[str, Any], value: int) -> str:
    return next(name for name, member in table.items() if member == value)


class _Workspace(NamedTuple):
    """Kept in one piece, so that a call never takes the address of one and the bytes of another."""

    array: Any  # as it was given
    address: int | None
    n_bytes: int


_NO_WORKSPACE = _Workspace(None, None, 0)


def _workspace_of(array: Any) -> _Workspace:
    if array is None:
        return _NO_WORKSPACE
    given = argument("workspace", array, is_output=True)
    if given is None:
        raise TypeError(f"workspace lies in host memory ({type_name(array)}), but it must lie on a GPU")
    _streams.require_gpu_backend()
    check_mutable(given)
    with ExitStack() as closing:
        view = given.view(_streams.LEGACY if given.stream is None else given.stream, closing)
    if view.is_readonly:
        raise ValueError("workspace is read-only")
    if not view.is_contiguous:
        raise ValueError(f"workspace has shape {view.shape} and strides {view.strides}; pass a contiguous array")
    n_bytes = math.prod(view.shape) * view.dtype.itemsize
    return _Workspace(array, view.address if n_bytes else None, n_bytes)


class Handle(_lib.StaysHere):
    """Settings that calls share: ``matmul(a, b, handle=Handle(threads=4))``. Streams are none of them: see
    matmul.

    Args:
        threads: most threads that a call may use; 0: as many as the machine allows (affinity, cgroup
            quota, WSGEMM_NUM_THREADS).
        policy: who works on which tile: "auto", "fixed_work", "fixed_blocks" or "steal"; on a GPU also
            "clc" or "foreach".
        coarse_factor: neighbouring tiles of one work item, 1 to 64; 0: chosen per call.
        kernel: names of kernel rows to force (see kernels()): one, or several for different element
            types; None: automatic.
        math: numerics class: "default", "pedantic" or "tf32".
        invariant: whether a row of a product has the same bits in a matrix of any height, alone, and in
            a stack; None: as WSGEMM_INVARIANT says, else not. See wsgemm_set_invariant in wsgemm.h.
        workspace: memory for the products on a GPU; None: the library's own. See the attribute.
        devices: GPUs that products of host arrays are computed on: "all", or their numbers, such as (0,
            1); (): none; None: as WSGEMM_OFFLOAD says, else none. See docs/offload.md.
        offload: "always", or "auto": only where the model says that the GPUs are faster than the CPU;
            None: as WSGEMM_OFFLOAD says, else always.

    All are attributes too, which can be read and set at any time and from any thread; a call takes what
    it finds when it begins. A handle can be neither copied nor pickled, but for the default one, which
    is each process's own.

    Raises:
        TypeError: workspace lies in host memory.
        ValueError: an unknown policy or math, or a workspace that is read-only or not contiguous.
        WsgemmError: a number out of range, or a kernel row that does not exist (INVALID_VALUE) or that
            this machine cannot run (NOT_SUPPORTED); a workspace that is badly aligned (INVALID_VALUE)
            or no memory of a GPU (INVALID_POINTER).
    """

    __slots__ = ("pointer", "_kernels", "_workspace", "_on_streams", "_progress", "__weakref__")

    pointer: int | None

    def __init__(
        self,
        threads: int = 0,
        policy: str = "auto",
        coarse_factor: int = 0,
        kernel: str | tuple[str, ...] | list[str] | None = None,
        math: str = "default",
        invariant: bool | None = None,
        workspace: Any = None,
        devices: str | Iterable[int] | None = None,
        offload: str | None = None,
    ) -> None:
        created = ctypes.c_void_p()
        _lib.check(_lib.library.wsgemm_create(ctypes.byref(created)))
        self._adopt(created.value)
        # Not at exit: daemon threads may still be multiplying then.
        weakref.finalize(self, _lib.library.wsgemm_destroy, created.value).atexit = False
        self.threads = threads
        self.policy = policy
        self.coarse_factor = coarse_factor
        self.kernel = kernel
        self.math = math
        if invariant is not None:
            self.invariant = invariant
        if workspace is not None:
            self.workspace = workspace
        if devices is not None:
            self.devices = devices
        if offload is not None:
            self.offload = offload

    def __reduce__(self) -> Any:
        return "default_handle" if self is default_handle else super().__reduce__()

    def _adopt(self, pointer: int | None) -> None:
        self.pointer = pointer
        self._kernels: tuple[str, ...] = ()
        self._workspace = _NO_WORKSPACE
        self._on_streams: dict[int, Handle] = {}
        self._progress: Any = None

    def _get(self, name: str) -> int:
        value = ctypes.c_int()
        _lib.check(getattr(_lib.library, "wsgemm_get_" + name)(self.pointer, ctypes.byref(value)))
        return value.value

    def _set(self, name: str, value: int) -> None:
        _lib.check(getattr(_lib.library, "wsgemm_set_" + name)(self.pointer, value))
        self._on_streams = {}

    @property
    def threads(self) -> int:
        return self._get("num_threads")

    @threads.setter
    def threads(self, value: int) -> None:
        self._set("num_threads", _c_int(value, "threads"))

    @property
    def policy(self) -> str:
        return _name_of(POLICIES, self._get("policy"))

    @policy.setter
    def policy(self, value: str) -> None:
        self._set("policy", _choice(POLICIES, value, "policy"))

    @property
    def coarse_factor(self) -> int:
        return self._get("coarse_factor")

    @coarse_factor.setter
    def coarse_factor(self, value: int) -> None:
        self._set("coarse_factor", _c_int(value, "coarse_factor"))

    @property
    def math(self) -> str:
        return _name_of(MATHS, self._get("math"))

    @math.setter
    def math(self, value: str) -> None:
        self._set("math", _choice(MATHS, value, "math"))

    @property
    def invariant(self) -> bool:
        return bool(self._get("invariant"))

    @invariant.setter
    def invariant(self, value: bool) -> None:
        self._set("invariant", _c_int(value, "invariant"))

    @property
    def devices(self) -> str | tuple[int, ...]:
        """The GPUs that products of host arrays are computed on: "all", or their numbers; () if none are."""
        numbers = (ctypes.c_int * _MOST_DEVICES)()
        n = ctypes.c_int()
        _lib.check(_lib.library.wsgemm_get_devices(self.pointer, numbers, _MOST_DEVICES, ctypes.byref(n)))
        return "all" if n.value < 0 else tuple(numbers[: n.value])

    @devices.setter
    def devices(self, value: str | Iterable[int]) -> None:
        if isinstance(value, str):
            if value != "all":
                raise ValueError(f"devices is {value!r}, but it must be 'all' or numbers of GPUs")
            _lib.check(_lib.library.wsgemm_set_devices(self.pointer, None, -1))
            self._heed_signals()
            return
        numbers = [_c_int(number, "devices") for number in value]
        _lib.check(_lib.library.wsgemm_set_devices(self.pointer, (ctypes.c_int * max(1, len(numbers)))(*numbers), len(numbers)))
        self._heed_signals()

    def _heed_signals(self) -> None:
        if self._progress is None:
            self._watch(None)

    @property
    def offload(self) -> str:
        return _name_of(OFFLOADS, self._get("offload"))

    @offload.setter
    def offload(self, value: str) -> None:
        self._set("offload", _choice(OFFLOADS, value, "offload"))

    def set_progress(self, function: Callable[[float], object] | None) -> None:
        """Has a function called now and then during products of host arrays on GPUs, on the calling thread,
        with the share that is done, 0 to 1; None: none. It must not multiply. What it raises stops the
        product, of which the result is then partly written, and is raised. So does Ctrl-C, also without a
        function, if the handle has been given devices.
        """
        self._watch(function)

    def _watch(self, function: Callable[[float], object] | None) -> None:
        report, user, kept = progress_of(function)
        _lib.check(_lib.library.wsgemm_set_progress(self.pointer, report, user))
        self._progress = kept  # as long as the C handle may call it

    @property
    def kernel(self) -> tuple[str, ...]:
        """The kernel rows that were forced through this object; () if none was."""
        return self._kernels

    @kernel.setter
    def kernel(self, value: str | tuple[str, ...] | list[str] | None) -> None:
        names = () if not value else (value,) if isinstance(value, str) else tuple(value)
        try:
            _lib.check(_lib.library.wsgemm_set_kernel(self.pointer, None))
            self._kernels = ()
            for name in names:
                _lib.check(_lib.library.wsgemm_set_kernel(self.pointer, name.encode()))
                self._kernels += (name,)
        finally:
            self._on_streams = {}

    @property
    def workspace(self) -> object:
        """The array that products on a GPU keep slices, copies and partial sums in; None: they use the
        library's own memory.

        >>> import wsgemm
        >>> wsgemm.Handle().workspace is None
        True

        On GPUs of compute capability 9.0 large float32 and complex64 products cut their operands into
        slices first. Each product that is captured into a graph needs memory of its own for that, which the
        library has for the first one; others would be made of multiply-adds, slower and with other bits.
        With a workspace they are not: allocate one before the capture, of the bytes that workspace_size()
        says.

        Set it to a contiguous array on a GPU, of any type and library, aligned to 256 bytes (an empty one
        is as none), or to None. It belongs to that GPU: products on another do without. No two calls that
        may run at the same time (on two streams, in two graphs, by two threads) may share it, nor any array
        of theirs share memory with it: give each its own, in a handle of its own. The calls are not ordered
        with its library's work, unless they are on the same stream. The handle keeps the array; whoever
        sets another, or lets the handle go, sees to it that the memory is put to no other use before the
        calls have ended on the GPU, and keeps it himself as long as a graph is replayed. One that is too
        small makes products slower: see wsgemm_set_workspace in wsgemm.h.

        Raises (when it is set):
            TypeError: it lies in host memory.
            ValueError: it is read-only or not contiguous.
            WsgemmError: it is badly aligned (INVALID_VALUE), or no memory of a GPU (INVALID_POINTER).
        """
        return self._workspace.array

    @workspace.setter
    def workspace(self, value: Any) -> None:
        self._lend(_workspace_of(value))

    def _lend(self, workspace: _Workspace) -> None:
        # The C handle's own is that of no product, for these have one each (on_stream): this asks whether it is good.
        _lib.check(_set_workspace(self.pointer, workspace.address, workspace.n_bytes))
        self._workspace = workspace
        self._on_streams = {}

    def fallback_count(self, device: int = 0) -> int:
        """For how many rows and columns of float32 and complex64 products on a GPU the first slices would not
        do so far; see wsgemm_get_fallback_count in wsgemm.h.

        Raises:
            WsgemmError: device is negative, or the GPU cannot be asked.
        """
        count = ctypes.c_int64()
        _lib.check(_lib.library.wsgemm_get_fallback_count(self.pointer, _c_int(device, "device"), ctypes.byref(count)))
        return count.value

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{name}={getattr(self, name)!r}" for name in ("threads", "policy", "coarse_factor", "kernel", "math", "invariant")
        )
        if self._workspace.array is not None:
            settings += f", workspace={self._workspace.n_bytes} bytes"
        return f"<wsgemm.Handle {settings}>" if self.pointer else f"<wsgemm.default_handle {settings}>"

    def on_stream(self, stream: int) -> Handle:
        """The handle of products with these settings on a CUDA stream.

        A stream is a setting of a C handle, so that two threads could not set it on one that they share. So
        each stream has a handle of its own, which nobody sets anything on once it is made, and which goes
        when a setting of this one changes. A caller keeps a reference until the call has returned.
        """
        made = self._on_streams
        handle = made.get(stream)
        if handle is None:
            if len(made) >= _MOST_STREAMS:
                made = self._on_streams = {}
            handle = self._copy()
            _lib.check(_lib.library.wsgemm_set_stream(handle.pointer, stream))
            made[stream] = handle  # whoever changes a setting meanwhile has put another dict in the place of this one
        return handle

    def _copy(self) -> Handle:
        # What matters on a GPU; the number of threads does not.
        copy = Handle()
        for name in ("policy", "coarse_factor", "quantum", "math", "check", "invariant"):
            copy._set(name, self._get(name))
        copy.kernel = self._kernels
        copy._lend(self._workspace)
        return copy


_stopped_by = threading.local()


def _raise_stopped() -> None:
    error, _stopped_by.error = getattr(_stopped_by, "error", None), None
    if error is not None:
        raise error


def progress_of(function: Callable[[float], object] | None) -> tuple[Any, Any, Any]:
    """What wsgemm_set_progress takes, and what must be kept meanwhile. Without src/python signals wait, and an exception between
    the lines of Python is printed."""
    from ._plans import _calls

    calls = _calls()
    if calls is not None:
        if calls.raise_stopped not in _lib.why_stopped:
            _lib.why_stopped.append(calls.raise_stopped)
        return _lib.Progress(calls.progress_address()), id(function), (function,)
    if _raise_stopped not in _lib.why_stopped:
        _lib.why_stopped.append(_raise_stopped)
    if function is None:
        return _lib.Progress(), None, ()

    def call(_: Any, done: float) -> int:
        try:
            function(done)
        except BaseException as error:
            _stopped_by.error = error
            return 1
        return 0

    report = _lib.Progress(call)
    return report, None, (report,)


_MOST_DEVICES = 64
_MOST_STREAMS = 64  # of which handles are kept: programs may make and forget streams without end

default_handle = Handle.__new__(Handle)  # what calls without a handle use
default_handle._adopt(None)


def pointer_of(handle: Handle | None) -> int | None:
    """The C handle that a call is given."""
    if handle is None:
        return None
    if not isinstance(handle, Handle):
        raise TypeError(f"handle must be a wsgemm.Handle or None, not {type(handle).__name__}")
    return handle.pointer


def on_stream(settings: Handle | None, stream: int) -> Handle:
    """The handle of a call on a CUDA stream, with the settings of another handle: see Handle.on_stream."""
    if settings is None:
        settings = default_handle
    else:
        pointer_of(settings)
    return settings._on_streams.get(stream) or settings.on_stream(stream)


def set_pinned_limit(n_bytes: int) -> None:
    """The most pinned memory that the library keeps for copies between host arrays and GPUs, of all GPUs
    together; 1 GiB by default.

    Args:
        n_bytes: with fewer than 16 MiB a GPU, products of pageable arrays stay on the CPU.

    Raises:
        ValueError: n_bytes is negative.
    """
    limit = operator.index(n_bytes)
    if limit < 0:
        raise ValueError(f"n_bytes is {limit}, but it must be at least 0")
    _lib.check(_lib.library.wsgemm_set_pinned_limit(limit))


@contextlib.contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Limits the threads of calls made by this Python thread inside the ``with`` block, on top of the
    handle's own limit.

    Args:
        n: most threads, the calling one included; 0: no limit.

    Raises:
        ValueError: n is negative.
    """
    limit = _c_int(n, "n")
    if limit < 0:
        raise ValueError(f"n is {limit}, but the least number of threads is 1 (or 0: no limit)")
    before = _lib.library.wsgemm_set_num_threads_local(limit)
    try:
        yield
    finally:
        _lib.library.wsgemm_set_num_threads_local(before)
