"""Handles: the settings of calls (threads, policy, COARSE_FACTOR, kernel rows, numerics), and num_threads().

A Handle owns one wsgemm_handle and frees it when the last reference goes, so that a call in flight on another thread keeps it
alive. The library holds the settings; only the names of forced kernel rows, which it does not give back, are kept here.
"""

from __future__ import annotations

import contextlib
import ctypes
import operator
import weakref
from collections.abc import Iterator
from typing import Any

from . import _lib

POLICIES = {policy.name[len("POLICY_") :].lower(): policy for policy in _lib.Policy}
MATHS = {math.name[len("MATH_") :].lower(): math for math in _lib.Math if math is not _lib.Math.MATH_INHERIT}
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


class Handle:
    """Settings that calls share: ``matmul(a, b, handle=Handle(threads=4))``. Streams are none of them: see matmul.

    Args:
        threads: most threads that a call may use; 0: as many as the machine allows (affinity, cgroup quota,
            WSGEMM_NUM_THREADS).
        policy: who works on which tile: "auto", "fixed_work", "fixed_blocks" or "steal"; on a GPU also "clc" or "foreach".
        coarse_factor: neighbouring tiles of one work item, 1 to 64; 0: chosen per call.
        kernel: names of kernel rows to force (see kernels()): one, or several for different element types; None: automatic.
        math: numerics class: "default", "pedantic" or "tf32".
        invariant: whether a row of a product has the same bits in a matrix of any height, alone, and in a stack; None: as
            WSGEMM_INVARIANT says, else not. See wsgemm_set_invariant in wsgemm.h.

    All are attributes too, which can be read and set at any time and from any thread; a call takes what it finds when it begins.

    Raises:
        ValueError: an unknown policy or math.
        WsgemmError: a number out of range, or a kernel row that does not exist (INVALID_VALUE) or that this machine cannot run
            (NOT_SUPPORTED).
    """

    __slots__ = ("pointer", "_kernels", "__weakref__")

    pointer: int | None

    def __init__(
        self,
        threads: int = 0,
        policy: str = "auto",
        coarse_factor: int = 0,
        kernel: str | tuple[str, ...] | list[str] | None = None,
        math: str = "default",
        invariant: bool | None = None,
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

    def _adopt(self, pointer: int | None) -> None:
        self.pointer = pointer
        self._kernels: tuple[str, ...] = ()

    def _get(self, name: str) -> int:
        value = ctypes.c_int()
        _lib.check(getattr(_lib.library, "wsgemm_get_" + name)(self.pointer, ctypes.byref(value)))
        return value.value

    def _set(self, name: str, value: int) -> None:
        _lib.check(getattr(_lib.library, "wsgemm_set_" + name)(self.pointer, value))

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
    def kernel(self) -> tuple[str, ...]:
        """The kernel rows that were forced through this object; () if none was."""
        return self._kernels

    @kernel.setter
    def kernel(self, value: str | tuple[str, ...] | list[str] | None) -> None:
        names = () if not value else (value,) if isinstance(value, str) else tuple(value)
        _lib.check(_lib.library.wsgemm_set_kernel(self.pointer, None))
        self._kernels = ()
        for name in names:
            _lib.check(_lib.library.wsgemm_set_kernel(self.pointer, name.encode()))
            self._kernels += (name,)

    def fallback_count(self, device: int = 0) -> int:
        """For how many rows and columns of float32 and complex64 products on a GPU the first slices would not do so far; see
        wsgemm_get_fallback_count in wsgemm.h.

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
        return f"<wsgemm.Handle {settings}>" if self.pointer else f"<wsgemm.default_handle {settings}>"

    def _take_settings(self, other: Handle) -> None:
        # What matters on a GPU; the number of threads does not.
        for name in ("policy", "coarse_factor", "quantum", "math", "check", "invariant"):
            self._set(name, other._get(name))
        rows = other._kernels
        if self._kernels != rows:
            self.kernel = rows


default_handle = Handle.__new__(Handle)  # what calls without a handle use
default_handle._adopt(None)


_idle: list[Handle] = []


@contextlib.contextmanager
def on_stream(settings: Handle | None, stream: int) -> Iterator[int | None]:
    """The C handle of a call on a CUDA stream, with the settings of another handle.

    A stream is a setting of a C handle, so that two threads could not set it on one that they share: each call takes a handle
    that no other call uses meanwhile, not even one that interrupts it in its own thread.
    """
    try:
        handle = _idle.pop()  # atomic, as append() is
    except IndexError:
        handle = Handle()
    try:
        handle._take_settings(default_handle if settings is None else settings)
        _lib.check(_lib.library.wsgemm_set_stream(handle.pointer, stream))
        yield handle.pointer
    finally:
        _idle.append(handle)


@contextlib.contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Limits the threads of calls made by this Python thread inside the ``with`` block, on top of the handle's own limit.

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
