"""Tuning: autotune() measures what is fastest for a shape; the other functions carry what was found from file to file.

The search is the library's. What is done here is to describe the product as matmul would, to show the progress, and to let an
exception out only after the search has ended: none can pass through the C frames between, and what was found by then is kept.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math as mathematics
import operator
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import _lib
from ._arrays import dtype_of
from ._handle import MATHS, Handle, pointer_of
from ._level3_plan import TRAITS, is_on_the_right

Shape = tuple[int, int, int]

_TYPES = {
    "s": _lib.Type.F32, "d": _lib.Type.F64, "c": _lib.Type.C32, "z": _lib.Type.C64, "h": _lib.Type.F16, "b": _lib.Type.BF16,
}  # fmt: skip
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z", "float16": "h", "bfloat16": "b"}
_LEVEL3 = {routine.name.lower(): routine for routine in _lib.Routine}
_OPS = {"n": _lib.Op.NO_TRANS, "t": _lib.Op.TRANS, "c": _lib.Op.CONJ_TRANS}
_REDRAW_S = 0.1


@dataclasses.dataclass(frozen=True)
class TuningResult:
    """What the search for one shape has found.

    Attributes:
        shape: (m, n, k), as it was given.
        before_us: median time of the library's built-in choice, in microseconds; 0: not measured.
        after_us: the same of what is kept; before_us, if nothing better was found.
        gain: before_us / after_us; 1 if nothing was measured.
        before, after: the built-in choice and what is kept, as "row=sgemm_avx512_32x12 policy=steal
            ..."; "" if there is nothing to choose for this shape.
        n_measured: candidates that were measured.
        n_refused: candidates that could not run, or whose result had other bits; none of them is ever
            kept.
        interrupted: whether the search was stopped before its end.
    """

    shape: Shape
    before_us: float
    after_us: float
    gain: float
    before: str
    after: str
    n_measured: int
    n_refused: int
    interrupted: bool


@dataclasses.dataclass(frozen=True)
class TuningStep:
    """What the search is doing; told after each measurement.

    Attributes:
        shape: (m, n, k), as it was given.
        shape_idx, n_shapes: which of how many shapes, from 0.
        candidate: what was just measured, as TuningResult.before.
        us: its time in this run, in microseconds; 0: not measured (budget_ms=0); below 0: refused.
        best: the fastest candidate so far.
        best_us, built_in_us: median times of it and of the built-in choice so far; 0: none yet.
        model: predicted time of the candidate, in parts of the built-in choice's.
        candidate_idx, n_candidates: which of how many candidates, from 0; the built-in choice is the
            first.
        n_survivors: how many survivors there are, the built-in choice among them.
        round: how often the slower half was given up, then the blocks in which a survivor is confirmed.
        elapsed_ms, budget_ms: of this shape, in milliseconds.
        noise: a quarter of the built-in choice's times so far differ from their median by more than
            this part of it.
    """

    shape: Shape
    shape_idx: int
    n_shapes: int
    candidate: str
    us: float
    best: str
    best_us: float
    built_in_us: float
    model: float
    candidate_idx: int
    n_candidates: int
    n_survivors: int
    round: int
    elapsed_ms: float
    budget_ms: float
    noise: float


def autotune(
    shapes: Iterable[Iterable[int]] | Iterable[int],
    *,
    routine: str | DTypeLike = "sgemm",
    ops: str = "NN",
    side: int | str = 0,
    lower: int = 0,
    device: int | None = None,
    math: str | None = None,
    beta: float = 0.0,
    budget_ms: float | None = None,
    seed: int = 1,
    file: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[TuningStep], Any] = False,
    exhaustive: bool = False,
    handle: Handle | None = None,
) -> list[TuningResult]:
    """Measures, shape by shape, which kernel row, tile, COARSE_FACTOR, policy and blocking multiplies
    fastest here, and keeps it: in this process at once, and in a file for later ones. Products of
    shapes near to these (a factor of 1.4 in all) are then done so.

    No bit of a result changes. Operands of random numbers are made for the time of the call.

    >>> import wsgemm
    >>> (result,) = wsgemm.autotune((96, 200, 64), budget_ms=0)  # nothing is measured or kept
    >>> result.shape, result.gain
    ((96, 200, 64), 1.0)

    Args:
        shapes: (m, n, k), or several of them: of products of an m x k by a k x n array, both in C
            order. Level 3 takes those of them that the routine has: m and n, or for syrk and its kin n
            and k.
        routine: "sgemm", "dgemm", "cgemm", "zgemm", "hgemm" (float16) or "bgemm" (bfloat16), or the
            arrays' dtype (also torch's); or "ssymm", "dsyrk", "cher2k", "zgemmtr", "strmm", "dtrsm",
            ...: of C-ordered arrays; trmm and trsm overwrite b.
        ops: two letters, for both operands: "N" as it is, "T" the transpose of a C-ordered array (a.T),
            "C" its conjugate. Of Level 3 the first is trans, both are gemmtr's.
        side, lower: of Level 3, as symm's.
        device: the number of a GPU, as the CUDA driver counts; None: the CPU.
        math: numerics class, as of Handle; None: the handle's.
        beta: of alpha * op(A) @ op(B) + beta * C, a real number. What half precision on a GPU has for
            one other than 0 is kept apart: it serves such products, and those with an epilogue of more
            than a bias and ReLU.
        budget_ms: milliseconds for each shape; None: 80 on a GPU, 1000 on the CPU; 0: nothing is
            measured or kept.
        seed: of the operands, and of the order in which candidates take turns.
        file: where it is kept; None: the user's file (tuning_file()); "": nowhere, it is for this
            process only.
        progress: True draws a line on stderr, if that is a terminal; a function is called with a
            TuningStep after each measurement, and stops all if what it returns is true. It must not
            call this package.
        exhaustive: measures every candidate, once whatever the budget (but 0), and up to five times
            while it lasts.
        handle: threads, policy, kernel and invariant mode of the products; what it forces is not tuned.
            None: the default handle.

    Returns:
        A TuningResult for each shape; fewer if `progress` stopped the search.

    Ctrl-C, and what `progress` raises, stops the search after the measurement that is running; what was
    found is kept, then the exception is raised.

    Raises:
        TypeError: a type, or a shape that is none.
        ValueError: ops, math, beta, or a routine that does not exist.
        WsgemmError: an argument out of its range (INVALID_VALUE), no memory (ALLOC_FAILED), no such GPU
            (NO_DEVICE), or (FILE_ERROR) what was found is in force, but cannot be written to the file.
            Shapes before it are kept.
    """
    wanted = _shapes(shapes)
    code, level3 = _routine_codes(routine)
    ops_codes = _op_codes(ops)
    is_right = is_on_the_right(side)
    beta = _beta(beta)
    math_code = int(_lib.Math.MATH_INHERIT) if math is None else _math_code(math)
    options = _lib.AutotuneOptions(
        struct_bytes=ctypes.sizeof(_lib.AutotuneOptions),
        device=-1 if device is None else _device(device),
        is_exhaustive=bool(exhaustive),
        budget_ms=-1 if budget_ms is None else _budget(budget_ms),
        seed=operator.index(seed) & (2**64 - 1),
        file=_path(file),
    )
    name = f"{_letter(code)}{level3.name.lower() if level3 else 'gemm'} {ops.lower()}"
    watcher = _watcher(progress, name)
    results: list[TuningResult] = []
    with _held_interrupts() as interrupts:
        for i, shape in enumerate(wanted):
            watch = _Watch(watcher, interrupts, shape, i, len(wanted))
            if level3 is None:
                desc = _desc(code, ops_codes, math_code, beta, shape)
                result = _search(_lib.library.wsgemm_autotune, desc, options, watch, handle)
            else:
                desc = _level3_desc(level3, code, ops_codes, math_code, beta, shape, is_right, bool(lower))
                result = _search(_lib.library.wsgemm_level3_autotune, desc, options, watch, handle)
            watch.finish()
            results.append(result)
            if watch.is_stopped:
                break
    return results


def tuning_file() -> str | None:
    """The name of the user's file, which the library reads when it is first used: that of WSGEMM_TUNE,
    else wsgemm/tuning in $XDG_CACHE_HOME or in ~/.cache; None: there is none (WSGEMM_TUNE=off).
    """
    return os.fsdecode(_lib.written(_lib.library.wsgemm_tuning_file)) or None


def tuning_lines(file: str | os.PathLike[str] | None = None) -> list[str]:
    """The valid lines of a tuning file, one for each shape, whatever machine they are of: text that
    import_tuning() takes.

    Args:
        file: None: the user's. A file that is not there has no lines, nor has one that cannot be read.
    """
    text = _lib.written(_lib.library.wsgemm_tuning_read, _path(file)).decode(errors="replace")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def import_tuning(lines: str | Iterable[str], file: str | os.PathLike[str] | None = None) -> int:
    """Merges the valid ones of these lines into a file, and takes them into use if it is the user's.

    Args:
        lines: text, or lines of it, as tuning_lines() gives them.
        file: None: the user's.

    Returns:
        How many were valid.

    Raises:
        WsgemmError: there are lines, but none is valid (INVALID_VALUE), or the file cannot be written
            (FILE_ERROR).
    """
    text = lines if isinstance(lines, str) else "\n".join(line.rstrip("\n") for line in lines)
    count = ctypes.c_int()
    # A NUL would end the text; as a line feed it damages only its own line.
    _lib.check(_lib.library.wsgemm_tuning_import(text.replace("\0", "\n").encode(), _path(file), ctypes.byref(count)))
    return count.value


def clear_tuning(file: str | os.PathLike[str] | None = None) -> None:
    """Empties a tuning file (None: the user's), and forgets what was in force of it if it is the user's.

    Raises:
        WsgemmError: it cannot be written (FILE_ERROR).
    """
    _lib.check(_lib.library.wsgemm_tuning_clear(_path(file)))


# ---- Arguments -----------------------------------------------------------------------------------------------------------


def _shapes(given: Any) -> list[Shape]:
    if isinstance(given, (str, bytes)):
        raise TypeError(f"shapes is {given!r}, but it must be (m, n, k) or several of them")
    items = list(given)
    if len(items) == 3 and all(hasattr(item, "__index__") for item in items):
        items = [items]
    return [_shape(item) for item in items]


def _shape(item: Any) -> Shape:
    try:
        m, n, k = (operator.index(size) for size in item)
    except (TypeError, ValueError):
        raise TypeError(f"a shape is {item!r}, but it must be three integers (m, n, k)") from None
    if not all(-(2**63) <= size < 2**63 for size in (m, n, k)):
        raise ValueError(f"a shape is {item!r}, beyond any sensible size")
    return m, n, k


def _routine_codes(routine: Any) -> tuple[_lib.Type, _lib.Routine | None]:
    """The type, and the routine of Level 3."""
    if isinstance(routine, str):
        letter = routine.removesuffix("gemm") if routine != "gemm" else ""
        if letter in _TYPES:
            return _TYPES[letter], None
        level3 = _LEVEL3.get(routine[1:])
        if level3 is not None and routine[0] in ("cz" if TRAITS[level3].of_reals else "sdcz"):
            return _TYPES[routine[0]], level3
    return _type_code(routine), None


def _type_code(routine: Any) -> _lib.Type:
    try:
        known = dtype_of(routine)
        dtype = np.dtype("V" if routine is None else routine) if known is None else known  # None would be float64
    except TypeError:
        names = ", ".join(f"{letter}gemm" for letter in _TYPES)
        raise ValueError(f"routine is {routine!r}, but it must be one of {names}, ssymm, dtrsm and so on, or a dtype") from None
    if dtype.name not in _LETTERS or not dtype.isnative:
        raise TypeError(f"routine is {dtype.name}, but it must be of {', '.join(_LETTERS)}, in native byte order")
    return _TYPES[_LETTERS[dtype.name]]


def _letter(code: _lib.Type) -> str:
    return next(letter for letter, known in _TYPES.items() if known is code)


def _op_codes(ops: str) -> tuple[int, int]:
    letters = ops.lower() if isinstance(ops, str) else ""
    if len(letters) != 2 or not set(letters) <= set(_OPS):
        raise ValueError(f"ops is {ops!r}, but it must be two letters of N, T and C")
    return int(_OPS[letters[0]]), int(_OPS[letters[1]])


def _math_code(math: str) -> int:
    if math not in MATHS:
        raise ValueError(f"math is {math!r}, but it must be one of {', '.join(map(repr, MATHS))}")
    return int(MATHS[math])


def _device(device: int) -> int:
    number = operator.index(device)
    if not 0 <= number < 2**31:
        raise ValueError(f"device is {number}, but it must be the number of a GPU, from 0, or None")
    return number


def _beta(beta: float) -> float:
    try:
        number = float(beta)
    except OverflowError:  # an integer
        number = float("inf")
    if not abs(number) <= float(np.finfo(np.float32).max):
        raise ValueError(f"beta is {beta!r}, but it must be a finite number that a float32 holds")
    return number


def _budget(budget_ms: float) -> float:
    number = float(budget_ms)
    if not number >= 0:
        raise ValueError(f"budget_ms is {budget_ms!r}, but it must be 0 or more")
    return number


def _path(file: str | os.PathLike[str] | None) -> bytes | None:
    if file is None:
        return None
    name = os.fsencode(file)
    if b"\0" in name:
        raise ValueError("file has a NUL character in its name")
    return name


def _desc(code: _lib.Type, ops: tuple[int, int], math: int, beta: float, shape: Shape) -> bytes:
    m, n, k = shape
    scalar_code = _lib.Type.F32 if code in (_lib.Type.F16, _lib.Type.BF16) else code
    lda = k if ops[0] == _lib.Op.NO_TRANS else m
    ldb = n if ops[1] == _lib.Op.NO_TRANS else k
    return _lib.DESC_FORMAT[code].pack(
        _lib.BASE_DESC_BYTES, _lib.Layout.ROW_MAJOR, *ops, code, code, code, scalar_code, math,
        _lib.ScalarMode.SCALAR_VALUE, _lib.Epilogue.EPILOGUE_NONE, m, n, k, 1.0, 0.0, beta, 0.0,
        0, max(1, lda), 0, max(1, ldb), 0, max(1, n), 1, 0, 0, 0,
    )  # fmt: skip


def _level3_desc(
    routine: _lib.Routine, code: _lib.Type, ops: tuple[int, int], math: int, beta: float, shape: Shape, is_right: bool, lower: bool
) -> bytes:
    m, n, k = shape
    traits = TRAITS[routine]
    (trans, trans_b), no = ops, _lib.Op.NO_TRANS
    if traits.is_triangle:
        if traits.is_rank_update and trans != no:  # of these there is but one transposition
            trans = _lib.Op.CONJ_TRANS if traits.of_reals else _lib.Op.TRANS
        m = 0
        lda = k if trans == no else n
        ldb = lda if traits.is_rank_update else n if trans_b == no else k
    else:
        k = 0
        lda, ldb = n if is_right else m, n
        trans = trans if "a" in traits.has_op else no
    if traits.is_in_place:
        beta = 0.0
    if "b" not in traits.has_op:
        trans_b = no
    return _lib.LEVEL3_FORMAT[code].pack(
        _lib.LEVEL3_DESC_BYTES, routine, _lib.Layout.ROW_MAJOR, _lib.Side.RIGHT if is_right else _lib.Side.LEFT,
        _lib.Uplo.LOWER if lower else _lib.Uplo.UPPER, trans, trans_b, _lib.Diag.NON_UNIT, code, math, m, n, k, 1.0, 0.0, beta, 0.0,
        0, max(1, lda), 0, max(1, ldb), 0, 0 if traits.is_in_place else max(1, n), 1, 0, 0, 0,
    )  # fmt: skip


# ---- A search ------------------------------------------------------------------------------------------------------------


def _search(function: Any, desc: bytes, options: _lib.AutotuneOptions, watch: _Watch, handle: Handle | None) -> TuningResult:
    told = _lib.AutotuneResult()
    callback = _lib.AutotuneProgress(watch.on_step)
    options.progress = callback
    options.result = ctypes.pointer(told)
    try:
        status = function(pointer_of(handle), desc, ctypes.byref(options))
    finally:
        watch.close()
    if watch.error is not None:
        error, watch.error = watch.error, None
        raise error
    if status == _lib.Status.NOT_SUPPORTED:
        return TuningResult(watch.shape, 0.0, 0.0, 1.0, "", "", 0, 0, watch.is_stopped)
    _lib.check(status)
    before_us, after_us = told.before_us, told.after_us
    gain = before_us / after_us if before_us > 0 and after_us > 0 else 1.0
    return TuningResult(
        watch.shape, before_us, after_us, gain, told.before.decode(), told.after.decode(), told.n_measured, told.n_refused,
        bool(told.is_interrupted),
    )  # fmt: skip


class _Interrupts:
    """What Ctrl-C did while a search was running."""

    count = 0
    call: Callable[[], Any] | None = None  # the handler that was there before, to be called afterwards


@contextmanager
def _held_interrupts() -> Iterator[_Interrupts]:
    """Keeps SIGINT for the end of the block. Python may raise KeyboardInterrupt between any two instructions, so also where the callback
    could not catch it, and ctypes would print and drop it."""
    interrupts = _Interrupts()
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(before):  # the default, ignored, or not Python's: none of our business
        yield interrupts
        return

    def note(number: int, frame: Any) -> None:
        interrupts.count += 1
        interrupts.call = lambda: before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
        if interrupts.call is not None:
            interrupts.call()


class _Watch:
    """The callback of one search."""

    def __init__(
        self, tell: Callable[[TuningStep], Any] | None, interrupts: _Interrupts, shape: Shape, shape_idx: int, n_shapes: int
    ) -> None:
        self.tell, self.interrupts = tell, interrupts
        self.shape, self.shape_idx, self.n_shapes = shape, shape_idx, n_shapes
        self.is_stopped = False
        self.error: BaseException | None = None

    def on_step(self, _user: Any, told: Any) -> int:
        try:
            if self.tell is not None:
                step = told.contents
                self.is_stopped = self.is_stopped or bool(
                    self.tell(
                        TuningStep(
                            self.shape, self.shape_idx, self.n_shapes, step.candidate.decode(), step.us, step.best.decode(),
                            step.best_us, step.built_in_us, step.model, step.candidate_idx, step.n_candidates, step.n_survivors,
                            step.round, step.elapsed_ms, step.budget_ms, step.noise,
                        )
                    )
                )  # fmt: skip
        except BaseException as error:
            self.error = error
        self.is_stopped = self.is_stopped or self.error is not None or self.interrupts.count > 0
        return int(self.is_stopped)

    def close(self) -> None:
        if isinstance(self.tell, _Line):
            self.tell.close()

    def finish(self) -> None:
        # Between the last step and here the search may have been told to stop, too late for it to see.
        self.is_stopped = self.is_stopped or self.interrupts.count > 0


# ---- The line on a terminal ----------------------------------------------------------------------------------------------


class _Line:
    """One line on stderr, drawn over itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin_s = time.monotonic()
        self.drawn_s = 0.0
        self.is_shown = False

    def __call__(self, step: TuningStep) -> None:
        now = time.monotonic()
        if now - self.drawn_s < _REDRAW_S:
            return
        self.drawn_s = now
        elapsed_s, budget_s = step.elapsed_ms * 1e-3, step.budget_ms * 1e-3
        each_s = (now - self.begin_s - elapsed_s) / step.shape_idx if step.shape_idx else budget_s
        left_s = max(0.0, budget_s - elapsed_s) + each_s * (step.n_shapes - step.shape_idx - 1)
        places = 2 if step.best_us < 100 else 1 if step.best_us < 10000 else 0
        gain = f"{step.built_in_us / step.best_us:.3f}x {step.best_us:.{places}f} us, " if step.best_us > 0 < step.built_in_us else ""
        text = (
            f"{step.shape_idx + 1}/{step.n_shapes} {self.name} {'x'.join(map(str, step.shape))}: {gain}"
            f"{mathematics.ceil(left_s)} s to go, {step.n_survivors} of {step.n_candidates} left, now {step.candidate}"
        )
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            width = 80
        sys.stderr.write(f"\r\033[K{text[: width - 1]}")
        sys.stderr.flush()
        self.is_shown = True

    def close(self) -> None:
        self.drawn_s = 0.0
        if self.is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self.is_shown = False


def _watcher(progress: Any, name: str) -> Callable[[TuningStep], Any] | None:
    if callable(progress):
        return progress  # type: ignore[no-any-return]
    if not isinstance(progress, (bool, np.bool_)):
        raise TypeError(f"progress is {progress!r}, but it must be True, False or a function")
    is_terminal = getattr(sys.stderr, "isatty", lambda: False)
    return _Line(name) if progress and is_terminal() else None
