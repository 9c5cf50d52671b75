"""The landscape of a tuning run: how near to the best time each tile comes with each COARSE_FACTOR, shape by shape.

One file for each routine and numerics class.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ._caption import caption
from ._results import Device, Record, by_routine, grouped
from ._style import Drawing, hide_rest, matplotlib, sheet

SUITES = ("landscape", "gpu_landscape", "gpu_half_landscape")

_COLUMNS = 3


def _tile_order(tile: str) -> list[int]:
    sizes = [int(number) for number in re.findall(r"\d+", tile)]
    return [math.prod(sizes), *sizes]


def _cells(records: list[Record]) -> dict[tuple[str, int], float]:
    groups = grouped(records, lambda r: (str(r["tile"]), int(r["coarse"])))
    return {key: min(float(r["ours"]) for r in group) for key, group in groups.items()}


def _draw_panel(ax: Any, cells: dict[tuple[str, int], float], tiles: list[str], factors: list[int]) -> Any:
    mpl = matplotlib()
    best = min(cells.values())
    shares = [[best / cells[t, f] if (t, f) in cells else math.nan for f in factors] for t in tiles]
    image = ax.imshow(shares, aspect="auto", cmap="cividis", norm=mpl.colors.Normalize(0, 1))
    for row, tile in enumerate(tiles):
        for column, factor in enumerate(factors):
            share = shares[row][column]
            if math.isnan(share):
                continue
            looks = {"fontweight": "bold"} if cells[tile, factor] == best else {}
            colour = "black" if share > 0.55 else "white"
            ax.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=7.5, color=colour, **looks)
    ax.set_xticks(range(len(factors)), [str(f) for f in factors])
    ax.set_yticks(range(len(tiles)), tiles)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def _time(records: list[Record]) -> str:
    best = min(records, key=lambda r: float(r["ours"]))
    return f"best {float(best['ours']):.4g} {best['unit']}".replace(" us", " µs")


def _draw_class(routine: str, numerics: str, records: list[Record]) -> Drawing:
    shapes = grouped(records, lambda r: str(r["case"]) + (f" beta={r['beta']:g}" if r.get("beta") else ""))
    tiles = sorted({str(r["tile"]) for r in records}, key=_tile_order)
    factors = sorted({int(r["coarse"]) for r in records})
    columns = min(_COLUMNS, len(shapes))
    rows = math.ceil(len(shapes) / columns)
    text = caption(
        records,
        "In the cells: speed of the best kernel with this tile and COARSE_FACTOR relative to the best of the shape, in percent;"
        " bold, the best. White: no such kernel was tried.",
    )
    body = rows * (0.75 + 0.24 * len(tiles))
    title = f"Tiles and COARSE_FACTOR: {routine}" + (f", {numerics}" if numerics else "")
    figure, axes = sheet(title, text, body, rows=rows, columns=columns, sharey=True)
    image = None
    for ax, (case, group) in zip(axes.flat, shapes.items()):
        image = _draw_panel(ax, _cells(group), tiles, factors)
        ax.set_title(f"{case}: {_time(group)}", fontsize=8.5)
        ax.set_xlabel("COARSE_FACTOR")
    for row in axes:
        row[0].set_ylabel("tile, rows x columns of C")
    hide_rest(axes, len(shapes))
    bar = figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01)
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])
    bar.set_label("share of the best, %")
    bar.outline.set_visible(False)
    suffix = "_".join(["", routine, *([numerics] if numerics else [])])
    return Drawing(figure, re.sub(r"[^A-Za-z0-9_]+", "-", suffix))


def draw(device: Device) -> list[Drawing]:
    groups = grouped(device.records(*SUITES), lambda r: (str(r["routine"]), str(r.get("numerics", ""))))
    order = by_routine(routine for routine, _ in groups)
    keys = sorted(groups, key=lambda key: (order.index(key[0]), key[1]))
    return [_draw_class(*key, groups[key]) for key in keys]
