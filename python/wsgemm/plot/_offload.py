"""Host matrices on GPUs: rates with all copies, below the roof of the link."""

from __future__ import annotations

import re
from typing import Any

from ._caption import caption
from ._results import Device, Record, grouped, needed
from ._style import GREY, ROUTINE_LOOKS, Drawing, grid, legend, line_handle, log_ticks, powers_of_two, sheet

SUITES = ("gpu_offload",)

_LINK = 55e9  # bytes a second each way, pinned: bench/NOTES.md
_BYTES = {"sgemm": 4, "dgemm": 8, "cgemm": 8, "zgemm": 16, "hgemm": 2, "bgemm": 2}
_FLOPS = {"cgemm": 8, "zgemm": 8}
_CASE = re.compile(r"NN (\d+) (pageable|pinned), 1 GPU$")
_SIDES = (("ours", "wsgemm", "-"), ("theirs", "cublasXt", "--"), ("cpu", "wsgemm on the CPU", ":"))


def _parts(record: Record) -> tuple[int, str] | None:
    found = _CASE.match(str(record["case"]))
    return (int(found[1]), found[2]) if found and record["routine"] in _BYTES and record["unit"] == "TFLOP/s" else None


def _size(record: Record) -> int:
    parts = _parts(record)
    assert parts is not None
    return parts[0]


def _memory(record: Record) -> str:
    parts = _parts(record)
    assert parts is not None
    return parts[1]


def roof(routine: str, n: int) -> float:
    """TFLOP/s where two n x n operands come over the link and nothing else takes time."""
    return _FLOPS.get(routine, 2) * n * _LINK / (2 * _BYTES[routine]) * 1e-12


def _draw_panel(ax: Any, records: list[Record], routines: list[str], sizes: list[int]) -> None:
    for routine in routines:
        for side, _, line in _SIDES:
            points = sorted((_size(r), float(r[side])) for r in records if r["routine"] == routine and r.get(side))
            if points:
                ax.plot(*zip(*points), zorder=3, linestyle=line, **ROUTINE_LOOKS[routine])
        ax.plot(sizes, [roof(routine, n) for n in sizes], color=GREY, linewidth=1, zorder=1)
        place = (sizes[0], roof(routine, sizes[0]))
        ax.annotate(f"link, {routine}", place, color=GREY, fontsize=7, xytext=(2, 3), textcoords="offset points")
    log_ticks(ax, "x", powers_of_two(min(sizes), max(sizes)))
    ax.set_xlabel("m = n = k")
    grid(ax)


def draw(device: Device) -> list[Drawing]:
    squares = [r for r in device.records(*SUITES) if _parts(r)]
    sizes_of = {routine: {_size(r) for r in squares if r["routine"] == routine} for routine in ROUTINE_LOOKS}
    records = needed([r for r in squares if len(sizes_of[str(r["routine"])]) > 1])
    panels = grouped(records, _memory)
    routines = [r for r in ROUTINE_LOOKS if any(x["routine"] == r for x in records)]
    sizes = sorted({_size(r) for r in records})
    text = caption(
        records,
        "Square products of matrices in host memory, copies and all, medians. Link: two operands at"
        f" {_LINK * 1e-9:.0f} GB/s, the rate of pinned memory on the H200's link; C comes back meanwhile.",
    )
    figure, axes = sheet("Host matrices on a GPU", text, 3.6, columns=len(panels), legend_rows=1, sharey=True)
    for ax, memory in zip(axes.flat, sorted(panels)):
        _draw_panel(ax, panels[memory], routines, sizes)
        ax.set_title(f"{memory} memory")
    rates = [float(r[side]) for r in records for side, _, _ in _SIDES if r.get(side)]
    log_ticks(axes[0, 0], "y", powers_of_two(min(rates) / 1.3, max(*rates, *(roof(r, sizes[-1]) for r in routines)) * 1.1))
    axes[0, 0].set_ylabel("TFLOP/s")
    handles = [line_handle(**ROUTINE_LOOKS[r]) for r in routines] + [line_handle(color=GREY, linestyle=line) for _, _, line in _SIDES]
    legend(figure, handles, routines + [name for _, name, _ in _SIDES], len(handles))
    return [Drawing(figure)]
