"""Statistics -> one row a token for each norm: mean, variance and peak before and after."""

from collections.abc import Iterator

from rich.text import Text

from normscope.render.grid import Cell, Entry, Row, laid_out, paragraph
from normscope.render.page import Page, to_text
from normscope.render.statistics_summary import heading_lines, norm_heading, spaced
from normscope.render.statistics_words import entry_labels, figure
from normscope.render.styles import PATH, QUIET
from normscope.statistics import Moments, NormStatistics, Statistics

_INDENT = 2
_COLUMNS = ("mean", "variance", "peak@channel")


def render_statistics_tokens(statistics: Statistics, page: Page) -> str:
    """Return a table for each norm."""
    tables = (_norm_lines(statistics, norm, page) for norm in statistics.norms)
    return to_text(spaced([heading_lines(statistics, page), *tables]), page)


def _norm_lines(statistics: Statistics, norm: NormStatistics, page: Page) -> list[Text]:
    heading = paragraph(norm_heading(norm), width=page.width, hang=_INDENT, style=PATH)
    if norm.before is None or norm.after is None:
        return heading
    labels = ("", "", *entry_labels(statistics, norm))
    rows = _aligned([_SIDES, (*_COLUMNS, *_COLUMNS), *_numbers(norm.before, norm.after)])
    entries = [Entry(lead=(Cell(label), *cells)) for label, cells in zip(labels, rows, strict=True)]
    return [*heading, *laid_out(entries, width=page.width, indent=_INDENT)]


_SIDES = ("", "", "before", "", "", "after")


def _numbers(before: Moments, after: Moments) -> Iterator[tuple[str, ...]]:
    for index in range(len(before.mean)):
        yield (*_of(before, index), *_of(after, index))


def _of(moments: Moments, index: int) -> tuple[str, ...]:
    return (
        figure(moments.mean[index]),
        figure(moments.variance[index]),
        f"{figure(moments.peak[index])}@{moments.peak_channel[index]}",
    )


def _aligned(rows: list[tuple[str, ...]]) -> list[Row]:
    """Return the rows with each column set flush right, below two lines of titles."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        tuple(
            Cell(text.rjust(width), "" if number > 1 else QUIET)
            for text, width in zip(row, widths, strict=True)
        )
        for number, row in enumerate(rows)
    ]
