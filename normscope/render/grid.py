"""Entries -> aligned lines: details beside their lead where the page is wide enough, else below.

No name is ever cut. Words wrap in the last column only; a word that is wider than the page runs
over its edge.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

_GAPS = (3, 2)
"""Columns between columns: the wider one where it fits."""
_INSET = 2
_NARROWEST = 32
"""Columns below which a wrapped last column is harder to read than a second line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One styled piece of a line."""

    text: str
    style: str = ""


Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A lead and the rows of details that belong to it; as many cells in every entry."""

    lead: Row
    details: tuple[Row, ...] = ()
    before: tuple[Text, ...] = ()
    """Lines above it that take no part in the columns."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """How wide each column is, and the page that they stand on."""

    widths: tuple[int, ...]
    gap: int
    indent: int
    page: int | None

    def room_of_last(self) -> int | None:
        """Return the columns that are left for the last one; None for a page without an edge."""
        if self.page is None or not self.widths:
            return None
        return self.page - self.indent - sum(self.widths[:-1]) - self.gap * (len(self.widths) - 1)


def laid_out(
    entries: Sequence[Entry], *, width: int | None, indent: int = 0, header: Entry | None = None
) -> list[Text]:
    """Return the entries as lines of one table; a column without any text is left out."""
    kept = _without_empty_columns(entries, header)
    rows = [row for entry in kept for row in _beside(entry)]
    for gap in _GAPS:
        columns = _Columns(_widths(rows), gap, indent, width)
        if _fits(rows, columns):
            return [line for entry in kept for line in _set_beside(entry, columns)]
    return list(_below(kept, width, indent))


def paragraph(
    text: str, *, width: int | None, indent: int = 0, hang: int = 0, style: str = ""
) -> list[Text]:
    """Return a sentence as lines; those after the first stand `hang` columns further in."""
    room = None if width is None else width - indent - hang
    first, *rest = _wrapped(text, room)
    margin = " " * indent
    return [
        Text(margin + first, style=style),
        *(Text(margin + " " * hang + line, style=style) for line in rest),
    ]


def _without_empty_columns(entries: Sequence[Entry], header: Entry | None) -> list[Entry]:
    leads = _used([entry.lead for entry in entries])
    details = _used([row for entry in entries for row in entry.details])
    everything = entries if header is None else (header, *entries)
    return [
        replace(
            entry,
            lead=_only(entry.lead, leads),
            details=tuple(_only(row, details) for row in entry.details),
        )
        for entry in everything
    ]


def _used(rows: Sequence[Row]) -> frozenset[int]:
    return frozenset(n for row in rows for n, cell in enumerate(row) if cell.text)


def _only(row: Row, columns: frozenset[int]) -> Row:
    return tuple(cell for n, cell in enumerate(row) if n in columns)


def _beside(entry: Entry) -> Iterator[Row]:
    blank = tuple(Cell("") for _ in entry.lead)
    for number, row in enumerate(entry.details or ((),)):
        yield (*(blank if number else entry.lead), *row)


def _set_beside(entry: Entry, columns: _Columns) -> Iterator[Text]:
    yield from entry.before
    for row in _beside(entry):
        yield from _set(row, columns)


def _below(entries: Sequence[Entry], width: int | None, indent: int) -> Iterator[Text]:
    gap = _GAPS[-1]
    leads = _Columns(_widths([entry.lead for entry in entries]), gap, indent, width)
    rows = [row for entry in entries for row in entry.details]
    details = _Columns(_widths(rows), gap, indent + _INSET, width)
    for entry in entries:
        yield from entry.before
        yield from _set(entry.lead, leads)
        for row in entry.details:
            if any(cell.text for cell in row):
                yield from _set(row, details)


def _widths(rows: Sequence[Row]) -> tuple[int, ...]:
    count = max((len(row) for row in rows), default=0)
    return tuple(
        max(cell_len(row[column].text) for row in rows if column < len(row))
        for column in range(count)
    )


def _fits(rows: Sequence[Row], columns: _Columns) -> bool:
    room = columns.room_of_last()
    if room is None or columns.widths[-1] <= room:
        return True
    last = [row[-1].text for row in rows if len(row) == len(columns.widths)]
    return room >= max(_NARROWEST, *(cell_len(word) for text in last for word in text.split()))


def _set(row: Row, columns: _Columns) -> Iterator[Text]:
    """Set one row; where its last cell wraps, the further lines stand under it."""
    if not row:
        return
    line = Text(" " * columns.indent)
    for cell, width in zip(row[:-1], columns.widths, strict=False):
        line.append(cell.text, style=cell.style)
        line.append(" " * (width - cell_len(cell.text) + columns.gap))
    edge = line.cell_len
    first, *rest = _wrapped(row[-1].text, columns.page and columns.page - edge)
    yield line.append(first, style=row[-1].style)
    for further in rest:
        yield Text(" " * edge).append(further, style=row[-1].style)


def _wrapped(text: str, room: int | None) -> list[str]:
    if room is None or cell_len(text) <= room:
        return [text]
    lines = textwrap.wrap(text, max(room, 1), break_long_words=False, break_on_hyphens=False)
    return lines or [""]  # nothing is left of blanks
