"""Schedule policies on a kernel bound by memory: what an expensive beginning of each block costs, and uneven work."""

from __future__ import annotations

from . import _policies
from ._caption import caption
from ._results import Device, Record, grouped, needed
from ._style import BLACK, GREY, Drawing, grid, legend, line_handle, log_ticks, sheet

SUITES = ("gpu_strategies",)


def overheads(device: Device) -> list[Record]:
    return [r for r in device.records(*SUITES) if str(r["case"]).startswith(("prologue", "uneven"))]


def draw(device: Device) -> list[Drawing]:
    records = needed(overheads(device))
    prologues = [r for r in records if "times_no_prologue" in r and _policies.number(r, "rounds")]
    uneven = [r for r in records if str(r["case"]).startswith("uneven")]
    policies = _policies.ordered(str(r["policy"]) for r in records)
    text = caption(
        records,
        "Left: every block first computes for so many rounds what all of its items need; time relative to that without it. Right:"
        " items of uneven length; time relative to that of fixed blocks on even items with as much work together (dotted)."
        " Medians.",
    )
    figure, axes = sheet("Schedule policies on a kernel bound by memory (vector_scale)", text, 3.2, columns=2, legend_rows=1)
    left, right = axes[0]
    for policy in policies:
        found = [r for r in prologues if r["policy"] == policy]
        points = sorted((_policies.number(r, "rounds") or 0, float(r["times_no_prologue"])) for r in found)
        if points:
            left.plot(*zip(*points), **_policies.looks(policy))
    log_ticks(left, "x", sorted({_policies.number(r, "rounds") or 0 for r in prologues}))
    log_ticks(left, "y", [1, 2, 4, 8, 16, 32])
    left.set(xlabel="rounds of a block's prologue", ylabel="time relative to that without prologue", title="expensive prologue")
    grid(left)
    cases = grouped(uneven, lambda r: str(r["case"]).partition(" ")[2])
    for place, group in enumerate(cases.values()):
        for record in group:
            policy = str(record["policy"])
            shift = 0.12 * (policies.index(policy) - (len(policies) - 1) / 2)
            looks = {**_policies.looks(policy), "linestyle": "none", "markersize": 6}
            right.plot([float(record["ours"])], [place + shift], **looks)
    right.axvline(1, color=BLACK, linestyle=":", linewidth=1.5, zorder=1)
    right.set_yticks(range(len(cases)), ["even" if case == "none" else case for case in cases])
    right.set_ylim(len(cases) - 0.5, -0.5)
    right.tick_params(axis="y", length=0)
    right.set(xlabel="time relative to fixed blocks on even items", title="uneven items")
    grid(right, "x")
    for place in range(1, len(cases)):
        right.axhline(place - 0.5, color=GREY, linewidth=0.4)
    handles = [line_handle(**_policies.looks(p)) for p in policies]
    legend(figure, handles, [_policies.label(p) for p in policies], len(policies))
    return [Drawing(figure)]
