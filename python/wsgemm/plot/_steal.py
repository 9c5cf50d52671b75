"""Sharing the CPU: the time of a product while another process keeps one core half busy."""

from __future__ import annotations

from . import _policies
from ._caption import caption
from ._results import Device, Record, grouped, needed
from ._style import BLACK, Drawing, sheet

SUITES = ("steal",)


def _size(record: Record) -> int:
    return _policies.number(record, "n") or 0


def _who(record: Record) -> tuple[str, str]:
    """(label, policy)"""
    policy = str(record["policy"])
    return (str(record["peer"]), "cuBLAS") if policy == "none" else (f"wsgemm, {_policies.label(policy)}", policy)


def draw(device: Device) -> list[Drawing]:
    records = needed(device.records(*SUITES))
    panels = grouped(records, _size)
    shares = [float(r["busy_share"]) for r in records]
    text = caption(
        records,
        f"Another process took {100 * min(shares):.0f} to {100 * max(shares):.0f} % of one core. Ideal (dotted): the time on the"
        " idle machine, longer by what was taken from both cores together.",
    )
    n_rows = max(len(group) for group in panels.values())
    title = "Beside a process that keeps one core half busy"
    figure, axes = sheet(title, text, 0.75 + 0.28 * n_rows, columns=len(panels), sharex=True, sharey=True)
    for ax, size in zip(axes.flat, sorted(panels)):
        rows = [(*_who(r), float(r["over_ideal"]), None) for r in panels[size]]
        _policies.draw_dots(ax, rows, ".2f")
        ax.axvline(1, color=BLACK, linestyle=":", linewidth=1.5)
        threads = {int(r["threads"]) for r in panels[size]}
        ax.set_title(f"{panels[size][0]['routine']}, n = {size}, {max(threads)} threads")
        ax.set_xlabel("time relative to ideal")
    return [Drawing(figure)]
