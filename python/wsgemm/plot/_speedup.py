"""Speedup of square products over the other libraries, by size."""

from __future__ import annotations

import math
from typing import Any

from ._caption import caption
from ._results import Device, Record, beside_best_peer, by_routine, grouped, needed, shape_of
from ._style import GREY, ROUTINE_LOOKS, Drawing, grid, legend, line_handle, log_ticks, powers_of_two, sheet, threads_text

CPU_SUITES = ("small", "square", "threads")
GPU_SUITES = ("gpu_square", "gpu_half_square")

_RATIOS = (0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16)


def _squares(records: list[Record]) -> list[Record]:
    kept = []
    for record in beside_best_peer(records):
        shape = shape_of(record)
        if shape is not None and shape.is_square and shape.ops == "NN":
            kept.append(record)
    return kept


def _size(record: Record) -> int:
    shape = shape_of(record)
    assert shape is not None
    return shape.n


def _draw_panel(ax: Any, records: list[Record]) -> None:
    groups = grouped(records, lambda r: str(r["routine"]))
    ax.axhline(1, color=GREY, linewidth=1, zorder=1)
    for routine in by_routine(groups):
        points = sorted((_size(r), float(r["ratio"])) for r in groups[routine])
        ax.plot(*zip(*points), zorder=3, **ROUTINE_LOOKS[routine])
    sizes = [_size(r) for r in records]
    log_ticks(ax, "x", powers_of_two(min(sizes), max(sizes)))
    ax.set_xlabel("m = n = k")
    grid(ax)


def draw(device: Device) -> list[Drawing]:
    on_gpu = bool(device.records(*GPU_SUITES))
    records = needed(_squares(device.records(*(GPU_SUITES if on_gpu else CPU_SUITES))))
    panels = grouped(records, lambda r: int(r.get("threads", 0)))
    peers = "cuBLAS" if on_gpu else "the fastest of the other libraries"
    sentence = f"Above 1 wsgemm is faster than {peers}; both timed in turn in one process on the same random data, medians."
    text = caption(records, sentence)
    title = f"Speedup of square products over {'cuBLAS' if on_gpu else 'OpenBLAS'}"
    octaves = [math.log2(max(map(_size, panels[t])) / min(map(_size, panels[t]))) + 1 for t in sorted(panels)]
    figure, axes = sheet(title, text, 3.4, columns=len(panels), legend_rows=1, sharey=True, width_ratios=octaves)
    for ax, threads in zip(axes.flat, sorted(panels)):
        _draw_panel(ax, panels[threads])
        if threads:
            ax.set_title(threads_text(threads))
    ratios = [float(r["ratio"]) for r in records]
    bottom, top = min(*ratios, 1) / 1.08, max(*ratios, 1) * 1.08
    log_ticks(axes[0, 0], "y", [t for t in _RATIOS if bottom <= t <= top])
    axes[0, 0].set(ylim=(bottom, top), ylabel=f"speedup over {'cuBLAS' if on_gpu else 'OpenBLAS'}")
    routines = by_routine(str(r["routine"]) for r in records)
    legend(figure, [line_handle(**ROUTINE_LOOKS[r]) for r in routines], routines, len(routines))
    return [Drawing(figure)]
