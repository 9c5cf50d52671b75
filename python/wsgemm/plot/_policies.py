"""What the pictures of schedule policies have in common: names, order, looks, and rows of dots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ._results import Record
from ._style import BLACK, POLICY_LOOKS, grid

# "idle" is no policy: nothing runs beside what is timed.
_ORDER = ("fixed_work", "fixed_blocks", "steal")


def ordered(policies: Iterable[str]) -> list[str]:
    """Each once: fixed, stealing, stealing with a quantum, other libraries."""

    def place(policy: str) -> tuple[int, int]:
        if policy in _ORDER:
            return _ORDER.index(policy), 0
        quantum = re.fullmatch(r"steal_q(\d+)", policy)
        return (3, int(quantum[1])) if quantum else (4, 0)

    return sorted(dict.fromkeys(p for p in policies if p != "idle"), key=place)


def label(policy: str) -> str:
    quantum = re.fullmatch(r"steal_q(\d+)", policy)
    return f"steal, quantum {quantum[1]}" if quantum else policy.replace("_", " ")


def looks(policy: str) -> dict[str, Any]:
    return POLICY_LOOKS.get(policy, {"color": BLACK, "marker": "*"})


def number(record: Record, name: str) -> int | None:
    """Of "sms=8" in a case's name: 8."""
    found = re.search(rf"\b{name}=(\d+)", str(record["case"]))
    return int(found[1]) if found else None


def draw_dots(ax: Any, rows: Sequence[tuple[str, str, float, float | None]], digits: str) -> None:
    """A row for each (label, policy, value, most): a dot, a line to the most, and the value in figures, formatted by `digits`."""
    for place, (_, policy, value, most) in enumerate(rows):
        colour = looks(policy)["color"]
        if most is not None:
            ax.plot([value, most], [place, place], color=colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        ax.plot([value], [place], linestyle="none", **{**looks(policy), "markersize": 6})
        ax.text(1.0, place, f" {value:{digits}}", transform=ax.get_yaxis_transform(), va="center", fontsize=8, color="#404040")
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    grid(ax, "x")
