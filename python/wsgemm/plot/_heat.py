"""Heat maps of the speedup over the fastest other library, by m and n: at one k, and of products drawn at random, by ranges of k."""

from __future__ import annotations

import math
import statistics
from typing import Any

from ._caption import caption
from ._results import Device, Record, beside_best_peer, by_routine, drawn_shape_of, grouped, needed, shape_of
from ._style import Drawing, hide_rest, matplotlib, plain, sheet, threads_text

SUITES = ("heat", "gpu_heat", "gpu_half_heat")
RANDOM_SUITES = ("gpu_random", "gpu_half_random_uniform")

_COLUMNS = 2
_COLOURS = ("#7F3B08", "#F1A340", "#F7F7F7", "#998EC3", "#2D004B")  # orange: slower, purple: faster; both ends dark


def _cells(records: list[Record]) -> dict[tuple[int, int], float]:
    cells = {}
    for record in records:
        shape = shape_of(record)
        if shape is not None:
            cells[shape.m, shape.n] = float(record["ratio"])
    return cells


# Of products drawn at random: m and n by factors of 4; the last k of each panel's products.
_FACTOR = 4
_DEPTHS = (256, 2048, math.inf)


def _bin(size: int) -> int:
    """The last size of those within the same factor."""
    last = 1
    while last < size:
        last *= _FACTOR
    return last


def _random_cells(records: list[Record]) -> dict[float, dict[tuple[int, int], float]]:
    """By the last k: the geometric means of what lies in each cell."""
    ratios: dict[float, dict[tuple[int, int], list[float]]] = {}
    for record in records:
        shape = drawn_shape_of(record)
        if shape is not None:
            depth = min(d for d in _DEPTHS if shape.k <= d)
            ratios.setdefault(depth, {}).setdefault((_bin(shape.m), _bin(shape.n)), []).append(float(record["ratio"]))
    return {depth: {key: statistics.geometric_mean(found) for key, found in cells.items()} for depth, cells in ratios.items()}


def _depth_text(place: int) -> str:
    """The range of k that ends with that of _DEPTHS."""
    if place == len(_DEPTHS) - 1:
        return f"k > {_DEPTHS[-2]}"
    return f"k = {_DEPTHS[place - 1] + 1} to {_DEPTHS[place]}" if place else f"k <= {_DEPTHS[0]}"


def _draw_panel(ax: Any, cells: dict[tuple[int, int], float], limit: float, size: float = 7) -> Any:
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
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color="white" if is_dark else "black")
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
    limit = _limit([cells for _, cells in panels])
    image = None
    for ax, ((routine, threads), cells) in zip(axes.flat, panels):
        image = _draw_panel(ax, cells, limit)
        ax.set_title(routine + (f", {threads_text(threads)}" if threads else ""))
        ax.set(xlabel="n", ylabel="m")
    hide_rest(axes, len(panels))
    _draw_bar(figure, axes, image, limit, peer)
    return [Drawing(figure)]


def draw_random(device: Device) -> list[Drawing]:
    records = needed([r for r in beside_best_peer(device.records(*RANDOM_SUITES)) if drawn_shape_of(r) is not None])
    groups = grouped(records, lambda r: str(r["routine"]))
    routines = by_routine(groups)
    panels = {routine: _random_cells(groups[routine]) for routine in routines}
    limit = _limit([cells for of_routine in panels.values() for cells in of_routine.values()])
    sentence = (
        "Products drawn at random, all ops. In the cells: speedup over cuBLAS, the geometric mean of the products whose m and n"
        f" lie there, beyond the cell before ({min(map(len, groups.values()))} or more of a routine, in all cells); above 1 (purple) wsgemm is faster."
    )
    height = max(len({m for m, _ in cells}) for of_routine in panels.values() for cells in of_routine.values())
    body = len(routines) * (0.75 + 0.28 * height)
    title = "Speedup over cuBLAS of random products by m, n and k"
    figure, axes = sheet(title, caption(records, sentence), body, rows=len(routines), columns=len(_DEPTHS))
    image = None
    for row, routine in zip(axes, routines):
        for place, (ax, depth) in enumerate(zip(row, _DEPTHS)):
            cells = panels[routine].get(depth)
            if cells is None:
                ax.set_visible(False)
                continue
            image = _draw_panel(ax, cells, limit, 6)
            ax.tick_params(labelsize=7)
            ax.set_title(f"{routine}, {_depth_text(place)}")
            ax.set(xlabel="n, at most", ylabel="m, at most")
    _draw_bar(figure, axes, image, limit, "cuBLAS")
    return [Drawing(figure)]


def _limit(panels: list[dict[tuple[int, int], float]]) -> float:
    return max(1.0, *(abs(math.log2(ratio)) for cells in panels for ratio in cells.values()))


def _draw_bar(figure: Any, axes: Any, image: Any, limit: float, peer: str) -> None:
    bar = figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01)
    whole = int(limit)
    ticks = list(range(-whole, whole + 1))
    bar.set_ticks(ticks, labels=[plain(2.0**t) for t in ticks])
    bar.set_label(f"speedup over {peer}")
    bar.outline.set_visible(False)
