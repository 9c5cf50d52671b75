"""Sharing the GPU: how much longer a product takes while another kernel holds some of the SMs."""

from __future__ import annotations

import math

from . import _policies
from ._caption import caption
from ._results import Device, Record, grouped, needed
from ._style import BLACK, Drawing, grid, hide_rest, legend, line_handle, sheet

SUITES = ("gpu_sharing", "gpu_half_sharing", "gpu_strategies")

_COLUMNS = 3


def held(device: Device) -> list[Record]:
    """Products, and a kernel that is bound by memory (vector_scale), beside one that holds SMs."""
    return [r for r in device.records(*SUITES) if str(r["case"]).startswith("held ") and r["unit"] == "times idle"]


def draw(device: Device) -> list[Drawing]:
    records = needed(held(device))
    panels = grouped(records, lambda r: (str(r["routine"]), _policies.number(r, "n")))
    policies = _policies.ordered(str(r["policy"]) for r in records)
    rows = math.ceil(len(panels) / _COLUMNS)
    text = caption(
        records,
        "A sleeping kernel holds so many SMs; time of the product relative to that on the idle GPU, medians. Ideal: what the SMs"
        " that are left would take. vector_scale: a kernel bound by memory.",
    )
    title = "Beside a kernel that holds some of the GPU's SMs"
    columns = min(_COLUMNS, len(panels))
    figure, axes = sheet(title, text, 2.35 * rows, rows=rows, columns=columns, legend_rows=2, sharex=True, sharey=True)
    for ax, ((routine, size), group) in zip(axes.flat, panels.items()):
        ideal = sorted({(_policies.number(r, "sms") or 0, float(r["ideal"])) for r in group if "ideal" in r})
        if ideal:
            ax.plot(*zip(*ideal), color=BLACK, linestyle=":", linewidth=1.5, zorder=5)
        for policy in policies:
            points = sorted((_policies.number(r, "sms") or 0, float(r["ours"])) for r in group if r["policy"] == policy)
            if points:
                ax.plot(*zip(*points), zorder=3, alpha=0.9, **_policies.looks(policy))
        ax.set_title(routine + (f", n = {size}" if size else ""))
        ax.set_xticks(sorted({_policies.number(r, "sms") or 0 for r in records}))
        grid(ax)
    hide_rest(axes, len(panels))
    for ax in axes[-1]:
        ax.set_xlabel("SMs held")
    for row in axes:
        row[0].set_ylabel("time relative to the idle GPU")
    handles = [line_handle(**_policies.looks(p)) for p in policies] + [line_handle(color=BLACK, linestyle=":")]
    legend(figure, handles, [_policies.label(p) for p in policies] + ["ideal"], 4)
    return [Drawing(figure)]
