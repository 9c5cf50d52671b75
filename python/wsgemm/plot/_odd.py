"""Records that cannot be drawn, or not as they are: they are left out, or shown with escapes, and named.

What a single kind of picture wants of its records is left to that picture.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import Any

from ._results import ROUTINES, Device, Record, shape_of

_NAMES = ("suite", "routine", "case", "device", "commit", "date")  # of every record
_POSITIVE = ("ours", "theirs", "ratio", "max", "ideal", "over_ideal", "times_no_prologue")  # most axes are logarithmic
_FINITE = ("peak_fraction", "busy_share", "beta")
_COUNTS = ("threads", "coarse")
_SIZED = ("case", "policy", "tile")  # hold sizes in figures
_MOST = 1e18
_N_NAMED = 5  # lines


def _shown(value: Any) -> str:
    try:
        text = ascii(value)
    except ValueError:  # an integer of more figures than Python prints
        text = "a number of too many figures"
    return text if len(text) <= 60 else text[:60] + "..."


def _number_is_odd(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if name in _COUNTS else (int, float)):
        return True
    # NaN is not below anything.
    return not (abs(value) <= _MOST) or (name in _POSITIVE and value < 1 / _MOST) or (name in _COUNTS and value < 0)


def _fault(record: Record) -> str | None:
    """What keeps a record from being drawn."""
    for name in _NAMES:
        if name not in record:
            return f"it has no {name}"
        if not isinstance(record[name], str):
            return f"its {name} is {_shown(record[name])}"
    for name in (*_POSITIVE, *_FINITE, *_COUNTS):
        if name in record and _number_is_odd(name, record[name]):
            return f"its {name} is {_shown(record[name])}"
    for name in _SIZED:
        if re.search(r"\d{19}", str(record.get(name, ""))):
            return f"its {name} {_shown(record[name])} is beyond any sensible size"
    shape = shape_of(record)
    if shape is not None and 0 in (shape.m, shape.n, shape.k):
        return f"its case {_shown(record['case'])} is a product without elements"
    if shape is not None and record["routine"] not in ROUTINES:
        return f"its routine {_shown(record['routine'])} is unknown"
    return None


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _listed(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]} is"
    named = [str(line) for line in lines[:_N_NAMED]]
    rest = [f"{len(lines) - _N_NAMED} more"] if len(lines) > _N_NAMED else [named.pop()]
    return f"lines {', '.join(named)} and {rest[0]} are"


def _suite(records: list[Record]) -> tuple[list[Record], list[str]]:
    kept = []
    said: dict[str, list[int]] = {}
    for line, record in enumerate(records, 1):
        fault = _fault(record)
        if fault is not None:
            said.setdefault(f"left out: {fault}", []).append(line)
            continue
        escaped = {name: _escaped(x) for name, x in record.items() if isinstance(x, str) and not x.isprintable()}
        if escaped:
            said.setdefault(f"shown with escapes: {', '.join(escaped)}", []).append(line)
        kept.append({**record, **escaped})
    return kept, [f"{_listed(lines)} {what}" for what, lines in said.items()]


def presentable(device: Device, suites: Iterable[str]) -> tuple[Device, list[str]]:
    """The device with what can be drawn of these suites; and what is said of the rest, in lines."""
    kept = dict(device.suites)
    said = []
    for suite in dict.fromkeys(suites):
        if suite in kept:
            kept[suite], lines = _suite(kept[suite])
            said += [f"{device.name}: {suite}.jsonl: {line}" for line in lines]
    return dataclasses.replace(device, suites=kept), said
