"""Statistics -> a picture: variance and peak of every token over depth; needs the extra `plot`."""

import html
import io
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from normscope.render.statistics_axes import (
    draw_growth,
    finish_axis,
    label_depth,
    mark_greatest,
    name_panel,
)
from normscope.render.statistics_curves import (
    Curve,
    Depth,
    depths_of,
    token_curves,
    usual_curves,
)
from normscope.render.statistics_words import heading_words
from normscope.render.visible import visible
from normscope.statistics import Quantity, Statistics

_PANELS = (
    ("variance before each norm", "before", Quantity.VARIANCE),
    ("variance after each norm", "after", Quantity.VARIANCE),
    ("peak before each norm (largest absolute value)", "before", Quantity.PEAK),
)
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito (2008): told apart by every kind of sight."""
_MARKS = ("o", "s", "^", "D", "v", "P")
_PANEL = (7.5, 3.4)
"""Inches."""
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "normscope",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def plot_statistics(measured: Sequence[Statistics], kind: str) -> bytes:
    """Return a picture as `png`, `svg` or `html`, one column a target (and stream of tokens)."""
    matplotlib: Any = import_module("matplotlib")
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A matplotlibrc in the current folder may be a stranger's, and can have LaTeX run.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        # A glyph that the font lacks is drawn as a box, and without a positive value no line is.
        warnings.simplefilter("ignore", UserWarning)
        picture = _drawn(measured)
        target = io.BytesIO()
        written = "svg" if kind == "html" else kind
        stamp = {"Date": None} if written == "svg" else {"Software": None}
        picture.savefig(target, format=written, dpi=150, metadata=stamp)
    content = target.getvalue()
    return _page(content, measured) if kind == "html" else content


def _page(svg: bytes, measured: Sequence[Statistics]) -> bytes:
    """Return a single file that needs nothing else."""
    title = html.escape(", ".join(visible(statistics.target) for statistics in measured))
    drawing = svg.decode()
    drawing = drawing[drawing.index("<svg") :]
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        "<style>svg{max-width:100%;height:auto}</style></head>\n"
        f"<body>\n{drawing}</body>\n</html>\n"
    ).encode()


def _drawn(measured: Sequence[Statistics]) -> Any:
    columns = [(statistics, depth) for statistics in measured for depth in depths_of(statistics)]
    figures: Any = import_module("matplotlib.figure")
    width, height = _PANEL
    rows = len(_PANELS) + 1
    picture = figures.Figure(
        figsize=(width * max(1, len(columns)), height * rows + 0.8), layout="constrained"
    )
    if not columns:
        picture.text(0.5, 0.5, "no norm has one row a token", ha="center")
        return picture
    axes = picture.subplots(rows, len(columns), squeeze=False, sharey="row")
    for column, (statistics, depth) in enumerate(columns):
        for row, (title, point, quantity) in enumerate(_PANELS):
            axis = axes[row][column]
            _draw(axis, statistics, depth, point, quantity)
            name_panel(axis, title if row else f"{_heading(statistics, depth)}\n\n{title}")
        draw_growth(axes[-1][column], statistics, depth.title)
    for axis in axes.flat:
        finish_axis(axis)
    return picture


def _heading(statistics: Statistics, depth: Depth) -> str:
    model, inputs = heading_words(statistics)
    side = f", {depth.title}" if depth.title else ""
    name = f"{visible(statistics.model.class_name)}   {visible(statistics.target)}{side}"
    return f"{name}\n{model}; {inputs}"


def _draw(axis: Any, statistics: Statistics, depth: Depth, point: str, quantity: Quantity) -> None:
    curves = token_curves(statistics, depth, point, quantity)
    places = range(len(depth.norms))
    for curve in curves:
        if not curve.outlying:
            axis.plot(places, curve.values, color="#999999", alpha=0.35, linewidth=0.6, zorder=1)
    median, largest = usual_curves(depth, point, quantity)
    axis.plot(places, median.values, color="black", linewidth=2, label=median.label, zorder=3)
    axis.plot(
        places, largest.values, color="black", linewidth=1, linestyle=":", label=largest.label,
        zorder=3,
    )  # fmt: skip
    _draw_outlying(axis, [curve for curve in curves if curve.outlying])
    axis.set_yscale("log", nonpositive="mask")
    if quantity is Quantity.PEAK:
        mark_greatest(axis, depth, largest)
    label_depth(axis, depth)
    drawn = [curve for curve in curves if not curve.outlying]
    if drawn:
        axis.plot([], [], color="#999999", linewidth=0.8, label="other tokens")


def _draw_outlying(axis: Any, curves: Sequence[Curve]) -> None:
    for number, curve in enumerate(curves):
        axis.plot(
            range(len(curve.values)),
            curve.values,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKS[number % len(_MARKS)],
            markersize=3,
            linewidth=1.2,
            label=curve.label,
            zorder=4,
        )
