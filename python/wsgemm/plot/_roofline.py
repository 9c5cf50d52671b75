"""Roofline: the rate of every product over its arithmetic intensity, below the roofs of the machine."""

from __future__ import annotations

import math
from typing import Any

from ._caption import caption
from ._ceilings import Ceilings, Roof, cpu_origin, of_cpu, of_gpu
from ._results import Device, Record, by_routine, grouped, intensity, needed, shape_of
from ._style import GREY, ROUTINE_LOOKS, Drawing, grid, legend, line_handle, log_ticks, powers_of_two, sheet, threads_text

CPU_SUITES = ("small", "square", "threads", "odd")
GPU_SUITES = ("gpu_square", "gpu_skinny", "gpu_half_square", "gpu_half_skinny")
PEDANTIC = "gpu_pedantic"  # of gpu_square's shapes, without slices

_AXIS = "arithmetic intensity: FLOP per byte of A, B and C"
_COMPLEX = "Intensity: as if each matrix were moved once; a complex multiply-add counts as 8 FLOP."
_RATES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

Points = list[tuple[float, float]]
Range = tuple[float, float]


def _points(records: list[Record]) -> Points:
    shapes = [(r, shape_of(r)) for r in records]
    return sorted({(intensity(r["routine"], shape), float(r["ours"])) for r, shape in shapes if shape is not None})


def _draw_roofs(ax: Any, ceilings: Ceilings, unit: float) -> None:
    left, right = ax.get_xlim()
    memory = ceilings.memory
    rates = [roof.rate for roof in ceilings.compute]
    looks = {"color": GREY, "linewidth": 1, "zorder": 1}
    for roof in ceilings.compute:
        rate = roof.rate / unit
        start = roof.rate / memory.rate if memory else left
        ax.plot([start, right], [rate, rate], linestyle="-" if roof.is_measured else "--", **looks)
        # Two roofs close together: labels above and below.
        has_above = any(roof.rate < other < 1.3 * roof.rate for other in rates)
        has_below = any(roof.rate / 1.3 < other < roof.rate for other in rates)
        ax.annotate(
            f"{roof.label}: {rate:.3g}",
            (right, rate),
            xytext=(4, 0),
            textcoords="offset points",
            va="top" if has_above else "bottom" if has_below else "center",
            fontsize=8,
            color=GREY,
            annotation_clip=False,
        )
    if memory:
        end = min(right, max(rates, default=math.inf) / memory.rate)
        xs = (left, end)
        ax.plot(xs, [x * memory.rate / unit for x in xs], linestyle="-" if memory.is_measured else "--", **looks)


def _bytes_rate(rate: float) -> str:
    return f"{rate / 1e12:.2f} TB/s" if rate >= 1e12 else f"{rate / 1e9:.0f} GB/s"


def _label_memory(figure: Any, ax: Any, memory: Roof, unit: float) -> None:
    """Along the slanted roof; the layout gives its slope."""
    figure.draw_without_rendering()
    x = max(ax.get_xlim()[0], ax.get_ylim()[0] * unit / memory.rate) * 1.5
    (x0, y0), (x1, y1) = ax.transData.transform([(x, x * memory.rate / unit), (2 * x, 2 * x * memory.rate / unit)])
    ax.annotate(
        f"{memory.label}: {_bytes_rate(memory.rate)}",
        (x, x * memory.rate / unit),
        xytext=(-3, 3),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)),
        rotation_mode="anchor",
        va="bottom",
        fontsize=8,
        color=GREY,
    )


def _looks(name: str) -> dict[str, Any]:
    """Of a routine, or of a routine with another kind of math: hollow."""
    routine, _, other = name.partition(" ")
    looks = ROUTINE_LOOKS[routine]
    return {**looks, "linestyle": "none", "markerfacecolor": "white" if other else looks["color"]}


def _ranges(points: list[Points], ceilings: list[Ceilings], unit: float) -> tuple[Range, Range]:
    xs = [x for group in points for x, _ in group]
    ys = [y for group in points for _, y in group]
    roofs = [roof.rate / unit for some in ceilings for roof in some.compute]
    return (min(xs) / 1.5, max(xs) * 1.5), (min(ys) / 1.4, max(ys + roofs) * 1.4)


def _draw_panel(ax: Any, series: dict[str, Points], ceilings: Ceilings, unit: float, ranges: tuple[Range, Range]) -> None:
    log_ticks(ax, "x", powers_of_two(*ranges[0], every=2))
    log_ticks(ax, "y", [rate for rate in _RATES if ranges[1][0] <= rate <= ranges[1][1]], base=10)
    ax.set(xlim=ranges[0], ylim=ranges[1], xlabel=_AXIS)
    _draw_roofs(ax, ceilings, unit)
    for name, points in series.items():
        ax.plot(*zip(*points), alpha=0.85, zorder=3, **_looks(name))
    grid(ax)


def draw_gpu(device: Device) -> list[Drawing]:
    records, pedantic = needed(device.records(*GPU_SUITES)), device.records(PEDANTIC)
    groups = grouped(records, lambda r: str(r["routine"]))
    series = {name: _points(groups[name]) for name in by_routine(groups)}
    if pedantic:
        series["sgemm with pedantic math"] = _points(pedantic)
    ceilings, origin = of_gpu(str(records[0]["device"]))
    text = caption(records + pedantic, origin, _COMPLEX, "L2 flushed before each run.", with_peers=False)
    figure, axes = sheet("What the products reach, and what the GPU could do", text, 4.4, legend_rows=1)
    ax = axes[0, 0]
    _draw_panel(ax, series, ceilings, 1e12, _ranges(list(series.values()), [ceilings], 1e12))
    ax.set_ylabel("TFLOP/s")
    legend(figure, [line_handle(**_looks(name)) for name in series], list(series), len(series))
    if ceilings.memory:
        _label_memory(figure, ax, ceilings.memory, 1e12)
    return [Drawing(figure)]


def draw_cpu(device: Device) -> list[Drawing]:
    records = needed(device.records(*CPU_SUITES))
    by_threads = grouped(records, lambda r: int(r["threads"]))
    counts = sorted(by_threads)
    ceilings = [of_cpu(by_threads[count]) for count in counts]
    series = []
    for count in counts:
        groups = grouped(by_threads[count], lambda r: str(r["routine"]))
        series.append({name: _points(groups[name]) for name in by_routine(groups)})
    ranges = _ranges([points for some in series for points in some.values()], ceilings, 1e9)
    text = caption(records, cpu_origin([by_threads[count] for count in counts]), _COMPLEX)
    title = "What the products reach, and what the CPU could do"
    figure, axes = sheet(title, text, 4.0, columns=len(counts), legend_rows=1, sharey=True)
    for ax, count, some, roofs in zip(axes.flat, counts, series, ceilings):
        _draw_panel(ax, some, roofs, 1e9, ranges)
        memory = f"; memory (dashed): at least {_bytes_rate(roofs.memory.rate)}" if roofs.memory else ""
        ax.set_title(threads_text(count) + memory)
    axes[0, 0].set_ylabel("GFLOP/s")
    routines = by_routine(str(r["routine"]) for r in records)
    legend(figure, [line_handle(**_looks(name)) for name in routines], routines, len(routines))
    return [Drawing(figure)]
