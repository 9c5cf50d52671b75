"""Preemption: how long a kernel of high priority waits for a product that fills the GPU; and what short waits cost."""

from __future__ import annotations

import math
from typing import Any

from . import _policies
from ._caption import caption
from ._results import Device, NoData, Record, by_routine, grouped, needed
from ._style import BLACK, GREY, ROUTINE_LOOKS, Drawing, grid, hide_rest, log_ticks, sheet

WAIT_SUITES = ("gpu_sharing", "gpu_half_sharing", "gpu_strategies")
COST_SUITES = ("gpu_sharing_rows", "gpu_half_sharing_rows")

_COLUMNS = 2
_DECADES = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
_WAITS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


def waits(device: Device) -> list[Record]:
    records = device.records(*WAIT_SUITES)
    return [r for r in records if str(r["case"]).startswith("priority") and not str(r["case"]).endswith("low kernel")]


def _ms(record: Record, field: str) -> float:
    return float(record[field]) / (1000 if record["unit"] == "us" else 1)


def draw_waits(device: Device) -> list[Drawing]:
    records = needed(waits(device))
    panels = grouped(records, lambda r: (str(r["routine"]), _policies.number(r, "n")))
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    text = caption(
        records,
        "A kernel of high priority is launched while one product of low priority fills the GPU. Marks and figures: median wait;"
        " bars: to the longest. Dashed: the wait on an idle GPU. vector_scale: a kernel bound by memory in the product's place.",
    )
    figure, axes = sheet("How long a kernel of high priority waits", text, 2.0 * rows, rows=rows, columns=columns, sharex=True)
    least = min(_ms(r, "ours") for r in records) / 1.6
    most = max(_ms(r, "max") for r in records) * 1.4
    for ax, ((routine, size), group) in zip(axes.flat, panels.items()):
        shown = {str(r["policy"]): r for r in group}
        rows_of_dots = [(_policies.label(p), p, _ms(shown[p], "ours"), _ms(shown[p], "max")) for p in _policies.ordered(shown)]
        log_ticks(ax, "x", [d for d in _DECADES if least <= d <= most], base=10)
        ax.set_xlim(least, most)
        _policies.draw_dots(ax, rows_of_dots, ".2g")
        if "idle" in shown:
            ax.axvline(_ms(shown["idle"], "ours"), color=BLACK, linestyle="--", linewidth=1)
        ax.set_title(f"beside {routine}" + (f", n = {size}" if size else ""))
    hide_rest(axes, len(panels))
    for ax in axes[-1]:
        ax.set_xlabel("wait, ms")
    return [Drawing(figure)]


def _pairs(records: list[Record]) -> list[tuple[str, float, float]]:
    """(kernel, wait in ms, cost) of each kernel that has both."""
    pairs = []
    for kernel, group in grouped(records, lambda r: str(r["kernel"])).items():
        wait = [_ms(r, "ours") for r in group if str(r["case"]).startswith("priority")]
        cost = [float(r["ours"]) for r in group if str(r["case"]).startswith("cost")]
        if wait and cost:
            pairs.append((kernel, wait[0], cost[0]))
    return pairs


def costs(device: Device) -> list[Record]:
    return device.records(*COST_SUITES)


def _mark_front(ax: Any, pairs: list[tuple[str, float, float]]) -> list[str]:
    """Letters for the kernels than which none is better in both; returns whose they are."""
    front = [p for p in pairs if not any(o[1] <= p[1] and o[2] <= p[2] and o != p for o in pairs)]
    ax.plot(*zip(*sorted((p[1], p[2]) for p in front)), color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    marks = list(zip("abcdefghijklmnopqrstuvwxyz", sorted(front, key=lambda p: p[1])))
    for mark, (_, wait, cost) in marks:
        ax.annotate(mark, (wait, cost), xytext=(-11, -9), textcoords="offset points", fontsize=8, fontweight="bold")
    return [f"{mark}  {kernel.partition('_')[2]}" for mark, (kernel, _, _) in marks]


def draw_costs(device: Device) -> list[Drawing]:
    records = needed(costs(device))
    panels = grouped(records, lambda r: str(r["routine"]))
    routines = [routine for routine in by_routine(panels) if _pairs(panels[routine])]
    text = caption(
        records,
        "Each mark is a kernel under stealing with a quantum of 1. Letters: those than which none is better in both. Upwards:"
        " time of the product with nothing beside it, relative to that of the fastest kernel.",
    )
    title = "How long others wait, and what it costs the product: kernel by kernel"
    if not routines:
        raise NoData("no kernel has both a wait and a cost")
    figure, axes = sheet(title, text, 3.9, columns=len(routines))
    for ax, routine in zip(axes.flat, routines):
        pairs = _pairs(panels[routine])
        ax.plot([p[1] for p in pairs], [p[2] for p in pairs], linestyle="none", **{**ROUTINE_LOOKS[routine], "markersize": 6})
        front = _mark_front(ax, pairs)
        xs = [p[1] for p in pairs]
        most = max(p[2] for p in pairs)
        left, right = min(xs) / 1.4, max(xs) * 1.4
        log_ticks(ax, "x", [t for t in _WAITS if left <= t <= right], base=10)
        log_ticks(ax, "y", [1, 1.2, 1.4, 1.6, 1.8, 2] if most < 2.5 else [1, 2, 4, 8, 16, 32])
        ax.set(xlim=(left, right), ylim=(most**-0.1, most**1.08))
        sizes = {_policies.number(r, "n") for r in panels[routine]}
        ax.set_title(f"{routine}, n = {', '.join(map(str, sizes))}")
        ax.set_xlabel("wait of a kernel of high priority, ms")
        key = "\n".join(front)
        ax.annotate(key, (0, 0), xytext=(0, -38), xycoords="axes fraction", textcoords="offset points", va="top", fontsize=8)
        grid(ax)
    axes[0, 0].set_ylabel("time relative to the fastest kernel")
    return [Drawing(figure)]
