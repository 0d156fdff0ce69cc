"""Panels of a picture -> their titles, ticks, marks and legends; needs the extra `plot`."""

import textwrap
from importlib import import_module
from typing import Any

from normscope.render.statistics_curves import Curve, Depth
from normscope.render.statistics_stream import StreamGrowth, growth_sentence, stream_growth
from normscope.render.statistics_words import figure
from normscope.render.visible import visible
from normscope.statistics import Quantity, Statistics

_LARGEST_FLOAT16 = 65504.0
_MOST_TICKS = 13
_FEW_DECADES = 30.0
"""Up to this share of the ends of an axis, 2 and 5 are labelled beside 1 and 10."""
_TITLE_COLUMNS = 80
"""Characters that fit above a panel."""
_STYLES = ("-", "--", "-.")


def name_panel(axis: Any, title: str) -> None:
    """Set a title in which no character has a meaning, broken into lines that fit."""
    lines = (
        part
        for line in title.split("\n")
        for part in textwrap.wrap(line, _TITLE_COLUMNS, break_on_hyphens=False) or [""]
    )
    axis.set_title("\n".join(lines), loc="left", parse_math=False)


def finish_axis(axis: Any) -> None:
    """Write plain numbers along the axis, and name the lines beside it."""
    ticker: Any = import_module("matplotlib.ticker")
    low, high = axis.get_ylim()
    steps = (1, 2, 5) if low > 0 and high / low < _FEW_DECADES else (1,)
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: figure(value)))
    axis.yaxis.set_minor_formatter(ticker.NullFormatter())
    axis.tick_params(labelleft=True)
    axis.margins(x=0.02)
    axis.grid(visible=True, axis="y", linewidth=0.4, alpha=0.5)
    if axis.get_legend_handles_labels()[0]:
        _name_lines(axis)


def _name_lines(axis: Any) -> None:
    legend = axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text in legend.get_texts():
        text.set_parse_math(False)


def mark_greatest(axis: Any, depth: Depth, largest: Curve) -> None:
    """Name the greatest peak and its channel, and show the end of float16 where it is near."""
    finite = [value for value in largest.values if 0 < value < float("inf")]
    if not finite:
        return
    peak = max(finite)
    if peak > _LARGEST_FLOAT16 / 100:
        axis.axhline(
            _LARGEST_FLOAT16, color="#d55e00", linewidth=0.8, linestyle="--",
            label="largest float16, 65,504",
        )  # fmt: skip
    at = largest.values.index(peak)
    right = at > len(largest.values) / 2
    moments = depth.norms[at].before
    place = moments.summary(Quantity.PEAK).at_token if moments is not None else None
    channel = "" if moments is None or place is None else moments.peak_channel[place]
    axis.annotate(
        f"{figure(peak)} in channel {channel}", (at, peak), xytext=(-4 if right else 4, 4),
        textcoords="offset points", ha="right" if right else "left", fontsize=8,
    )  # fmt: skip


def label_depth(axis: Any, depth: Depth) -> None:
    """Number the blocks along the axis."""
    ticks = depth.ticks()
    _set_ticks(axis, ticks, len(depth.norms))
    axis.set_xlabel(f"block of {visible(depth.stacks())}", parse_math=False)


def _set_ticks(axis: Any, ticks: tuple[tuple[int, str], ...], count: int) -> None:
    """The last tick is always shown, others as far as there is room."""
    step = max(1, -(-len(ticks) // _MOST_TICKS))
    shown = [tick for tick in ticks[:-1:step] if ticks[-1][0] - tick[0] > count / 20]
    shown.append(ticks[-1])
    axis.set_xticks([place for place, _ in shown], [visible(name) for _, name in shown])


def draw_growth(axis: Any, statistics: Statistics, stream: str) -> None:
    """Draw the variance of the stream from block to block, and say how it goes."""
    axis.set_yscale("log", nonpositive="mask")
    growths = [item for item in stream_growth(statistics) if item.stream == stream]
    if not growths:
        name_panel(axis, "no stack of blocks whose stream could be followed")
        return
    for number, growth in enumerate(growths):
        style = _STYLES[number % len(_STYLES)]
        named = f", {visible(growth.stack)}" if len(growths) > 1 else ""
        places = range(len(growth.places))
        axis.plot(
            places, growth.usual, style, color="black", linewidth=2, label=f"median token{named}"
        )
        axis.plot(
            places, growth.largest, style, color="#d55e00", linewidth=1,
            label=f"largest token{named}",
        )  # fmt: skip
    longest = max(growths, key=lambda growth: len(growth.places))
    _set_ticks(axis, _places(longest), len(longest.places))
    axis.set_xlabel("block")
    sentences = (growth_sentence(growth) for growth in growths)
    name_panel(axis, f"stream before each block: {'; '.join(sentences)}")


def _places(growth: StreamGrowth) -> tuple[tuple[int, str], ...]:
    inside = f"{growth.stack}."
    return tuple(
        (index, place.removeprefix(inside) if place.startswith(inside) else "end")
        for index, place in enumerate(growth.places)
    )
