"""Inspection -> the norm table."""

from collections.abc import Callable, Sequence

from rich.text import Text

from normscope.inspection import Inspection
from normscope.render.figures import counted
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.norm_rows import NormRow, norm_rows
from normscope.render.page import Page, to_text
from normscope.render.styles import QUIET

Column = tuple[str, Callable[[NormRow], str]]

FACTS: Sequence[Column] = (
    ("norm", lambda row: row.norm),
    ("eps", lambda row: row.eps),
    ("gain", lambda row: row.gain),
    ("dtype", lambda row: row.dtypes),
    ("in half precision", lambda row: row.half),
)
"""Said once above the table where every row has the same; rows of which it is not known aside."""


def render_norms(inspection: Inspection, page: Page) -> str:
    """Return a row for each norm call; equal calls in equal blocks of a stack are one row."""
    rows = norm_rows(inspection)
    if not rows:
        return "no norm was found\n"
    entries = [_entry(row, columns_of(rows)) for row in rows]
    header = Entry(
        lead=(Cell("name", QUIET),),
        details=(tuple(Cell(name, QUIET) for name, _ in columns_of(rows)),),
    )
    lines = [
        *(line for text in heading_of(inspection, rows) for line in _told(text, page)),
        Text(""),
        *laid_out(entries, width=page.width, header=header),
    ]
    return to_text(lines, page)


def heading_of(inspection: Inspection, rows: Sequence[NormRow]) -> tuple[str, ...]:
    """Return what holds for all rows, and how the rows are to be read."""
    ran = sum(1 for norm in inspection.norms if norm.calls)
    shared = [
        f"{name} {value}"
        for name, fact in FACTS
        for value in _values(rows, fact)
        if not _varies(rows, fact)
    ]
    told = [f"{counted(ran, 'norm call')}{', all with ' if shared else ''}{', '.join(shared)}"]
    if any(row.blocks for row in rows):
        told.append("equal norms of equal blocks are one row; * stands for the blocks listed")
    return tuple(told)


def columns_of(rows: Sequence[NormRow]) -> Sequence[Column]:
    """Return the columns that tell rows apart; the name stands before them."""
    facts = [column for column in FACTS if _varies(rows, column[1])]
    return (
        ("blocks", lambda row: row.blocks),
        ("runs", lambda row: row.runs),
        ("role", lambda row: row.role),
        *facts,
        ("folds", lambda row: row.folds),
    )


def _varies(rows: Sequence[NormRow], fact: Callable[[NormRow], str]) -> bool:
    return len(_values(rows, fact)) > 1


def _values(rows: Sequence[NormRow], fact: Callable[[NormRow], str]) -> set[str]:
    return {fact(row) for row in rows} - {""}


def _entry(row: NormRow, columns: Sequence[Column]) -> Entry:
    cells = tuple(Cell(fact(row)) for _, fact in columns)
    return Entry(lead=(Cell(row.name),), details=(cells,))


def _told(text: str, page: Page) -> list[Text]:
    return paragraph(text, width=page.width)
