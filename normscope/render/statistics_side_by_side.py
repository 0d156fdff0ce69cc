"""Two statistics -> one table: what a placement, a type or a fine-tune has changed."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from normscope.render.figures import all_of
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.names import within_block
from normscope.render.page import Page, to_text
from normscope.render.statistics_float16 import float16_sentence
from normscope.render.statistics_pairs import (
    PairedNorm,
    PairedNorms,
    PairedStacks,
    Two,
    pair_norms,
    pair_stacks,
)
from normscope.render.statistics_summary import spaced
from normscope.render.statistics_words import figure, heading_words, norm_title
from normscope.render.styles import NOTE, PATH, QUIET, TITLE
from normscope.render.visible import visible
from normscope.statistics import NormStatistics, Statistics

_INDENT = 2
_SIDES = ("A", "B")
_NUMBER_WIDTH = 7


def render_side_by_side(first: Statistics, second: Statistics, page: Page) -> str:
    """Return medians and maxima of the variances of both, with the ratio of B to A.

    Norm by norm where both have the same, else block by block at equal depth; empty where neither
    can be compared.
    """
    norms, stacks = pair_norms(first, second), pair_stacks(first, second)
    if norms is not None:
        table = _norm_lines(norms, page)
    elif stacks:
        table = [line for pair in stacks for line in _stack_lines(pair, page)]
    else:
        return ""
    both = (first, second)
    return to_text(spaced([_heading(both, page), _finding_lines(both, page), table]), page)


def _heading(both: Sequence[Statistics], page: Page) -> list[Text]:
    lines: list[Text] = []
    inputs = [heading_words(statistics)[1] for statistics in both]
    for side, statistics in zip(_SIDES, both, strict=True):
        lines += _named(side, statistics, page)
        if inputs[0] != inputs[1]:
            words = heading_words(statistics)[1]
            lines += paragraph(words, width=page.width, indent=_MARGIN, style=QUIET)
    if inputs[0] == inputs[1]:
        lines += paragraph(inputs[0], width=page.width, indent=_MARGIN, style=QUIET)
    return lines


_MARGIN = 3
"""What a side's letter takes up."""


def _named(side: str, statistics: Statistics, page: Page) -> list[Text]:
    """Name the model, its target and its size in one line, or else each in its own."""
    name, target = visible(statistics.model.class_name), visible(statistics.target)
    pieces = (f"{side}  {name}", target, heading_words(statistics)[0])
    whole = "   ".join(pieces)
    if page.width is None or cell_len(whole) <= page.width:
        return [Text(whole, style=TITLE)]
    lines = [Text(pieces[0], style=TITLE)]
    for piece in pieces[1:]:
        lines += paragraph(piece, width=page.width, indent=_MARGIN)
    return lines


def _finding_lines(both: Sequence[Statistics], page: Page) -> list[Text]:
    lines: list[Text] = []
    for side, statistics in zip(_SIDES, both, strict=True):
        for item in statistics.findings:
            words = f"{side}  {item.code}  {visible(item.message)}"
            lines += paragraph(words, width=page.width, indent=_INDENT, hang=10, style=NOTE)
        if fit := float16_sentence(statistics):
            lines += paragraph(f"{side}  {fit}", width=page.width, indent=_INDENT, hang=_MARGIN)
    return lines


_WIDTHS = (7, 7, 5)
"""Of A, B and B/A; a longer figure moves its line."""


def _titles(lead: tuple[Cell, ...]) -> Entry:
    over = ("median", "", "", "max", "", "")
    return Entry(lead=lead, details=(_row(over), _row(("A", "B", "B/A") * 2)))


def _row(words: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(
        Cell(word.rjust(width), QUIET) for word, width in zip(words, _WIDTHS * 2, strict=True)
    )


def _numbers(median: Two, largest: Two) -> tuple[Cell, ...]:
    numbers = (value for two in (median, largest) for value in (two.first, two.second, two.ratio()))
    return tuple(
        Cell(("" if value is None else figure(value)).rjust(width))
        for value, width in zip(numbers, _WIDTHS * 2, strict=True)
    )


# Norm by norm.


def _norm_lines(norms: PairedNorms, page: Page) -> list[Text]:
    lines = laid_out(
        list(_entries(norms.both)),
        width=page.width,
        indent=_INDENT,
        header=_titles((Cell("variance", PATH),)),
    )
    for side, alone in zip(_SIDES, (norms.only_first, norms.only_second), strict=True):
        if alone:
            lines += paragraph(_only(side, alone), width=page.width, indent=_INDENT, hang=2)
    return lines


def _entries(norms: Sequence[PairedNorm]) -> Iterator[Entry]:
    """Names stand on lines of their own: beside six numbers there is no room for them."""
    for block, members in groupby(norms, key=lambda pair: pair.norm.block):
        above = [] if block is None else [Text("  ").append(visible(block), style=PATH)]
        margin = _INDENT if block is None else 2 * _INDENT
        for pair in members:
            above.append(Text(" " * margin + _name(pair.norm, block)))
            for item in pair.points:
                word = Cell(" " * margin + item.point, QUIET)
                numbers = _numbers(item.median, item.largest)
                yield Entry(lead=(word,), details=(numbers,), before=tuple(above))
                above = []


def _name(norm: NormStatistics, block: str | None) -> str:
    inner = within_block(norm.name, block) if block is not None else visible(norm.name)
    return inner + (f" (call {norm.call})" if norm.call else "")


def _only(side: str, norms: Sequence[NormStatistics]) -> str:
    return f"only in {side}: {all_of(norm_title(norm) for norm in norms)}"


# Depth by depth.


def _stack_lines(pair: PairedStacks, page: Page) -> list[Text]:
    heading = "variance of the stream by depth, since the norms of the two differ"
    entries = [
        Entry(
            lead=tuple(
                Cell(_short(place, stack))
                for place, stack in zip(item.places, pair.stacks, strict=True)
            ),
            details=(_numbers(item.median, item.largest),),
        )
        for item in pair.depths
    ]
    header = _titles(tuple(Cell(f"before {side}'s", QUIET) for side in _SIDES))
    return [
        *paragraph(heading, width=page.width, indent=_INDENT, style=PATH),
        *laid_out(entries, width=page.width, indent=_INDENT, header=header),
    ]


def _short(place: str | None, stack: str) -> str:
    """Leave out the path that a stack and what follows it share."""
    outside = stack.rpartition(".")[0]
    return "" if place is None else visible(place.removeprefix(f"{outside}."))
