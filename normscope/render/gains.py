"""Inspection -> the stored gains and biases over depth."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from normscope.inspection import Inspection
from normscope.render.gain_rows import GainRow, gain_rows
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.page import Page, to_text
from normscope.render.sparkline import sparkline
from normscope.render.styles import PATH, QUIET

COLUMNS = ("blocks", "first", "mean over depth", "last", "smallest", "largest", "")
_MOST_BARS = 24

NO_VALUES = "no norm values were read: this target has no weights that can be read"


def render_gains(inspection: Inspection, page: Page) -> str:
    """Return the means of gains and biases over depth, their range, and what stands out."""
    parts = (
        ("gains: what each channel is multiplied by (w, or 1 + w)", False),
        ("biases", True),
    )
    lines: list[Text] = []
    for title, biases in parts:
        rows = gain_rows(inspection, biases=biases)
        if rows:
            lines += [*([Text("")] if lines else []), *_part(title, rows, page)]
    return to_text(lines or paragraph(NO_VALUES, width=page.width), page)


def _part(title: str, rows: Sequence[GainRow], page: Page) -> Iterator[Text]:
    yield from paragraph(title, width=page.width)
    header = Entry(
        lead=(Cell("name", QUIET),), details=(tuple(Cell(name, QUIET) for name in COLUMNS),)
    )
    entries = [
        Entry(lead=(Cell(row.name, PATH),), details=(tuple(map(Cell, gain_cells(row))),))
        for row in rows
    ]
    yield from laid_out(entries, width=page.width, header=header)


def gain_cells(row: GainRow) -> tuple[str, ...]:
    """Return what the columns say of one row."""
    several = len(row.means) > 1
    return (
        row.blocks,
        f"{row.means[0]:.3g}",
        sparkline(row.means, most=_MOST_BARS) if several else "",
        f"{row.means[-1]:.3g}" if several else "",
        f"{row.smallest:.3g}",
        f"{row.largest:.3g}",
        row.note,
    )
