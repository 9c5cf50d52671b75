"""What all pictures have in common: width, fonts, colours, places, ticks, and files that are the same bytes on every run.

matplotlib is imported in here, and only when something is drawn. No pyplot: a picture leaves no trace in the process.
"""

from __future__ import annotations

import dataclasses
import io
import math
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 9.0  # inches; 900 pixels in a README at 100 dots per inch
_DOTS = 144
_CAPTION_COLUMNS = 148
_LINE = 0.15  # inches, of the caption
_TITLE = 0.36
_LEGEND_ROW = 0.24

# The palette of Okabe and Ito, which most colour-blind readers can tell apart; markers tell the rest.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#666666"
ROUTINE_LOOKS: dict[str, dict[str, Any]] = {
    "sgemm": {"color": BLUE, "marker": "o"},
    "dgemm": {"color": VERMILLION, "marker": "s"},
    "cgemm": {"color": SKY, "marker": "^"},
    "zgemm": {"color": ORANGE, "marker": "D"},
    "hgemm": {"color": GREEN, "marker": "v"},
    "bgemm": {"color": PURPLE, "marker": "P"},
}
POLICY_LOOKS: dict[str, dict[str, Any]] = {
    "fixed_work": {"color": GREY, "marker": "s", "markersize": 6.5},  # others often lie on it,
    "fixed_blocks": {"color": ORANGE, "marker": "D"},
    "steal": {"color": SKY, "marker": "o"},
    "steal_q1": {"color": BLUE, "marker": "^"},
    "steal_q4": {"color": GREEN, "marker": "v"},
    "steal_q8": {"color": PURPLE, "marker": "P"},
    "cuBLAS": {"color": VERMILLION, "marker": "X"},
}
_RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "text.hinting": "none",
    "text.parse_math": False,  # names may hold a $
    "svg.hashsalt": "wsgemm",
    "svg.fonttype": "path",
}


class MissingMatplotlib(Exception):
    pass


def matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.figure
        import matplotlib.lines
        import matplotlib.style
        import matplotlib.ticker
    except ImportError as error:
        advice = f"{sys.executable} -m pip install matplotlib"
        raise MissingMatplotlib(f"pictures need matplotlib ({error}): {advice} (or Debian's python3-matplotlib)") from error
    return matplotlib


def in_style() -> Any:
    """A context in which figures must be made and saved: the reader's matplotlibrc has no say."""
    return matplotlib().style.context(["default", _RC])


def _numbered(svg: str) -> str:
    """The names of clip paths and marks by their order: Matplotlib makes some of them of where things lie in memory."""
    names: dict[str, str] = {}
    return re.sub(r"\b[pmh][0-9a-f]{10}\b", lambda found: names.setdefault(found[0], f"{found[0][0]}{len(names)}"), svg)


@dataclasses.dataclass
class Drawing:
    figure: Any
    suffix: str = ""  # of the file, where one picture becomes several

    def files(self) -> list[tuple[str, bytes]]:
        """(ending of the name, content); nothing is written before all of it is there."""
        png, svg = io.BytesIO(), io.StringIO()
        self.figure.savefig(png, format="png", dpi=_DOTS, metadata={"Software": None})
        self.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        return [(self.suffix + ".png", png.getvalue()), (self.suffix + ".svg", _numbered(svg.getvalue()).encode())]


def sheet(
    title: str,
    caption: str,
    body: float,
    rows: int = 1,
    columns: int = 1,
    legend_rows: int = 0,
    **subplots: Any,
) -> tuple[Any, Any]:
    """A figure with title, room for a legend, axes of `body` inches' height, and the caption; and its axes in a 2-d array."""
    lines = textwrap.wrap(caption, _CAPTION_COLUMNS)
    bottom = _LINE * len(lines) + 0.12
    top = _TITLE + _LEGEND_ROW * legend_rows
    height = body + top + bottom
    figure = matplotlib().figure.Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(rect=(0, bottom / height, 1, body / height), w_pad=0.06, h_pad=0.06)
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    texts = [
        figure.text(0.1 / WIDTH, 1 - 0.1 / height, title, va="top", fontsize=11.5, fontweight="bold"),
        figure.text(0.1 / WIDTH, 0.07 / height, "\n".join(lines), va="bottom", fontsize=7.5, color="#404040", linespacing=1.3),
    ]
    for text in texts:
        text.set_in_layout(False)
    return figure, axes


def legend(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """Between title and axes; handles and labels run along the rows."""
    height = figure.get_size_inches()[1]
    order = [i for column in range(columns) for i in range(column, len(handles), columns)]
    box = figure.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        loc="upper left",
        bbox_to_anchor=(0.02 / WIDTH, 1 - (_TITLE - 0.05) / height),
        ncols=columns,
        columnspacing=1.4,
        handletextpad=0.5,
        handlelength=1.8,
    )
    box.set_in_layout(False)


def line_handle(**looks: Any) -> Any:
    return matplotlib().lines.Line2D([], [], **looks)


def hide_rest(axes: Any, used: int) -> None:
    for axis in list(axes.flat)[used:]:
        axis.set_visible(False)


def threads_text(count: int) -> str:
    return f"{count} thread" + ("" if count == 1 else "s")


def plain(value: float) -> str:
    return f"{value:g}"


def log_ticks(ax: Any, which: str, ticks: Iterable[float], base: float = 2) -> None:
    """Makes the axis "x" or "y" logarithmic, with plain numbers at the given places and nothing between."""
    ticker = matplotlib().ticker
    getattr(ax, f"set_{which}scale")("log", base=base)
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(ticker.FixedLocator(list(ticks)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_locator(ticker.NullLocator())


def powers_of_two(least: float, most: float, every: int = 1) -> list[float]:
    first, last = math.ceil(math.log2(least) - 1e-9), math.floor(math.log2(most) + 1e-9)
    return [2.0**e for e in range(first, last + 1) if e % every == 0]


def grid(ax: Any, axis: str = "both") -> None:
    ax.grid(axis=axis, color="#E4E4E4", linewidth=0.7)
