"""Statistics -> one row a token for each norm: what goes in, what is scaled, what comes out."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from normscope.render.grid import Cell, Entry, Row, laid_out, paragraph
from normscope.render.page import Page, to_text
from normscope.render.statistics_summary import heading_lines, norm_heading, spaced
from normscope.render.statistics_words import entry_labels, figure
from normscope.render.styles import PATH, QUIET
from normscope.statistics import Moments, Normalized, NormStatistics, Statistics, greatest

_INDENT = 2
_COLUMNS = ("mean", "variance", "peak@ch")


def render_statistics_tokens(statistics: Statistics, page: Page) -> str:
    """Return a table for each norm."""
    tables = (_norm_lines(statistics, norm, page) for norm in statistics.norms)
    return to_text(spaced([heading_lines(statistics, page), *tables]), page)


def _norm_lines(statistics: Statistics, norm: NormStatistics, page: Page) -> list[Text]:
    heading = paragraph(norm_heading(norm), width=page.width, hang=_INDENT, style=PATH)
    if norm.before is None or norm.after is None:
        return heading
    labels = ("", "", *entry_labels(statistics, norm))
    plain = [_SIDES, (*_COLUMNS, *_COLUMNS), *_numbers(norm.before, norm.after)]
    if norm.normalized is None:
        return [*heading, *_tables(labels, plain, page)]
    full = list(_with_normalized(plain, norm.normalized))
    if _has_room(labels, full, page):
        return [*heading, *_table(labels, full, page)]
    words = paragraph(_in_words(norm.normalized), width=page.width, indent=_INDENT, hang=_INDENT)
    return [*heading, *words, *_tables(labels, plain, page)]


_SIDES = ("before", "", "", "after", "", "")
_GAP = 2
"""At least, between two columns."""


def _tables(labels: Sequence[str], rows: list[tuple[str, ...]], page: Page) -> list[Text]:
    """Set one table, or where that is too wide one of what goes in above one of what comes out."""
    if _has_room(labels, rows, page):
        return _table(labels, rows, page)
    half = len(_COLUMNS)
    halves = ([row[:half] for row in rows], [row[half:] for row in rows])
    return [line for part in halves for line in _table(labels, part, page)]


def _table(labels: Sequence[str], rows: list[tuple[str, ...]], page: Page) -> list[Text]:
    entries = [
        Entry(lead=(Cell(label), *cells))
        for label, cells in zip(labels, _aligned(rows), strict=True)
    ]
    return laid_out(entries, width=page.width, indent=_INDENT)


def _has_room(labels: Sequence[str], rows: Sequence[tuple[str, ...]], page: Page) -> bool:
    columns = (tuple(labels), *zip(*rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    narrowest = _INDENT + sum(widths) + _GAP * (len(widths) - 1)
    return page.width is None or narrowest <= page.width


def _numbers(before: Moments, after: Moments) -> Iterator[tuple[str, ...]]:
    for index in range(len(before.mean)):
        yield (*_of(before, index), *_of(after, index))


def _with_normalized(
    rows: Sequence[tuple[str, ...]], normalized: Normalized
) -> Iterator[tuple[str, ...]]:
    """Put two columns in the middle."""
    points = zip(normalized.mean, normalized.variance, strict=True)
    numbers = ((figure(mean), figure(variance)) for mean, variance in points)
    middle = (("normalized", ""), ("mean", "variance"), *numbers)
    half = len(_COLUMNS)
    for row, between in zip(rows, middle, strict=True):
        yield (*row[:half], *between, *row[half:])


def _in_words(normalized: Normalized) -> str:
    """Say between what the tokens lie, where the page has no room for two more columns."""
    return f"normalized: mean {_range(normalized.mean)}, variance {_range(normalized.variance)}"


def _range(values: Sequence[float]) -> str:
    ends = figure(min(values)), figure(greatest(values))
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


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
