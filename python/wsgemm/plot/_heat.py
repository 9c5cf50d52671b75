"""Heat map of the speedup over the fastest other library, by m and n, at one k."""

from __future__ import annotations

import math
from typing import Any

from ._caption import caption
from ._results import Device, Record, beside_best_peer, by_routine, grouped, needed, shape_of
from ._style import Drawing, hide_rest, matplotlib, plain, sheet, threads_text

SUITES = ("heat", "gpu_heat", "gpu_half_heat")

_COLUMNS = 2
_COLOURS = ("#7F3B08", "#F1A340", "#F7F7F7", "#998EC3", "#2D004B")  # orange: slower, purple: faster; both ends dark


def _cells(records: list[Record]) -> dict[tuple[int, int], float]:
    cells = {}
    for record in records:
        shape = shape_of(record)
        if shape is not None:
            cells[shape.m, shape.n] = float(record["ratio"])
    return cells


def _draw_panel(ax: Any, cells: dict[tuple[int, int], float], limit: float) -> Any:
    mpl = matplotlib()
    ms, ns = sorted({m for m, _ in cells}), sorted({n for _, n in cells})
    grid = [[math.log2(cells[m, n]) if (m, n) in cells else math.nan for n in ns] for m in ms]
    colours = mpl.colors.LinearSegmentedColormap.from_list("slower-faster", _COLOURS)
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap=colours, norm=mpl.colors.Normalize(-limit, limit))
    for row, m in enumerate(ms):
        for column, n in enumerate(ns):
            if (m, n) not in cells:
                continue
            ratio = cells[m, n]
            is_dark = abs(math.log2(ratio)) > 0.62 * limit
            text = f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if is_dark else "black")
    ax.set_xticks(range(len(ns)), [plain(n) for n in ns])
    ax.set_yticks(range(len(ms)), [plain(m) for m in ms])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def draw(device: Device) -> list[Drawing]:
    records = needed(beside_best_peer(device.records(*SUITES)))
    groups = grouped(records, lambda r: (str(r["routine"]), int(r.get("threads", 0))))
    keys = sorted(groups, key=lambda key: (by_routine(k[0] for k in groups).index(key[0]), key[1]))
    panels = [(key, _cells(groups[key])) for key in keys]
    depths = sorted({shape.k for shape in map(shape_of, records) if shape is not None})
    on_gpu = not device.records("heat")
    peer = "cuBLAS" if on_gpu else "OpenBLAS"
    sentence = f"In the cells: speedup over {peer}; above 1 (purple) wsgemm is faster."
    if not on_gpu:
        sentence += " Of several versions the faster one counts."
    n_rows = math.ceil(len(panels) / _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    body = n_rows * (0.75 + 0.26 * max(len({m for m, _ in cells}) for _, cells in panels))
    title = f"Speedup over {peer} by m and n, k = {', '.join(map(str, depths))}"
    figure, axes = sheet(title, caption(records, sentence), body, rows=n_rows, columns=columns)
    limit = max(1.0, *(abs(math.log2(ratio)) for _, cells in panels for ratio in cells.values()))
    image = None
    for ax, ((routine, threads), cells) in zip(axes.flat, panels):
        image = _draw_panel(ax, cells, limit)
        ax.set_title(routine + (f", {threads_text(threads)}" if threads else ""))
        ax.set(xlabel="n", ylabel="m")
    hide_rest(axes, len(panels))
    bar = figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01)
    whole = int(limit)
    ticks = list(range(-whole, whole + 1))
    bar.set_ticks(ticks, labels=[plain(2.0**t) for t in ticks])
    bar.set_label(f"speedup over {peer}")
    bar.outline.set_visible(False)
    return [Drawing(figure)]
