"""The result files, bench/results/<device>/<suite>.jsonl: reading them, and what the names of their cases mean.

A record stays the dict that its line holds; nothing is added to it.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

Record = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)

ROUTINES = ("sgemm", "dgemm", "cgemm", "zgemm", "hgemm", "bgemm")  # in BLAS's order
_ELEMENT_BYTES = dict(zip(ROUTINES, (4, 8, 8, 16, 2, 2)))


class ResultsError(Exception):
    """The results cannot be read; the message names the file, and the line."""


class NoData(Exception):
    """The results do not hold what a picture shows."""


@dataclasses.dataclass(frozen=True)
class Shape:
    ops: str  # "NN"; with the layout where a suite goes through both: "NN row"
    m: int
    n: int
    k: int

    @property
    def is_square(self) -> bool:
        return self.m == self.n == self.k


@dataclasses.dataclass(frozen=True)
class Device:
    """One folder of results."""

    name: str  # of the folder
    suites: dict[str, list[Record]]

    @property
    def has_gpu(self) -> bool:
        return any(suite.startswith("gpu_") for suite in self.suites)

    def records(self, *suites: str) -> list[Record]:
        return [record for suite in suites for record in self.suites.get(suite, [])]


def _read_suite(path: pathlib.Path) -> list[Record]:
    records = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ResultsError(f"{path}:{number}: {error}") from error
        if not isinstance(record, dict):
            raise ResultsError(f"{path}:{number}: not a JSON object")
        records.append(record)
    return records


def read(folder: pathlib.Path, device: str | None = None) -> list[Device]:
    """The devices with results in a folder, by name; with `device` only that one."""
    if not folder.is_dir():
        raise ResultsError(f"there is no folder {folder}")
    paths: dict[str, list[pathlib.Path]] = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        paths.setdefault(path.parent.name, []).append(path)
    if not paths:
        raise ResultsError(f"{folder} holds no results (<device>/<suite>.jsonl)")
    if device is not None and device not in paths:
        raise ResultsError(f"{folder} holds no results of {device}; there are {', '.join(paths)}")
    return [
        Device(name, {path.stem: _read_suite(path) for path in found})
        for name, found in paths.items()
        if device is None or name == device
    ]


_SQUARE = re.compile(r"(?:([NT]{2} (?:row|col)) )?n=(\d+)")
_NAMED = re.compile(r"m=(\d+) n=(\d+) k=(\d+)")
_CROSSED = re.compile(r"([NTnt]{2}) (\d+)x(\d+)x(\d+)")
_DRAWN = re.compile(r"([NT]{2}) ([1-9]\d*)x([1-9]\d*)x([1-9]\d*) [a-z]+ lda\+")


def shape_of(record: Record) -> Shape | None:
    """The shape that a case is named after; None if the name says something else, or more ("ld+1", "spread")."""
    case = str(record["case"])
    if found := _SQUARE.fullmatch(case):
        return Shape(found[1] or "NN", int(found[2]), int(found[2]), int(found[2]))
    if found := _NAMED.fullmatch(case):
        return Shape("NN", int(found[1]), int(found[2]), int(found[3]))
    if found := _CROSSED.fullmatch(case):
        return Shape(found[1].upper(), int(found[2]), int(found[3]), int(found[4]))
    return None


def drawn_shape_of(record: Record) -> Shape | None:
    """The shape of a case drawn at random: "TN 130x77x2049 ragged lda+3 ..."; None: it is none."""
    found = _DRAWN.match(str(record["case"]))
    return Shape(found[1], int(found[2]), int(found[3]), int(found[4])) if found else None


def matrix_bytes(routine: str, shape: Shape) -> int:
    """Bytes of A, B and C."""
    return _ELEMENT_BYTES[routine] * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n)


def flops(routine: str, shape: Shape) -> int:
    """A complex multiply-add counts as four real ones, as in the result files."""
    return (8 if routine in ("cgemm", "zgemm") else 2) * shape.m * shape.n * shape.k


def intensity(routine: str, shape: Shape) -> float:
    """Operations for a byte, if each matrix is moved once."""
    return flops(routine, shape) / matrix_bytes(routine, shape)


def needed(records: list[Record]) -> list[Record]:
    """The records, of which there must be some."""
    if not records:
        raise NoData("no record of its suites says what it shows")
    return records


def grouped(records: Iterable[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def by_routine(routines: Iterable[str]) -> list[str]:
    """Each once, in BLAS's order; names that are no BLAS routines at the end."""
    found = dict.fromkeys(routines)
    return [r for r in ROUTINES if r in found] + [r for r in found if r not in ROUTINES]


def beside_best_peer(records: Iterable[Record]) -> list[Record]:
    """One record for each case: that with the fastest of the peers."""
    rated = [r for r in records if "ratio" in r and not str(r.get("peer", "")).startswith("wsgemm")]
    groups = grouped(rated, lambda r: (r["suite"], r["routine"], r["case"], r.get("threads")))
    return [min(group, key=lambda r: float(r["ratio"])) for group in groups.values()]
