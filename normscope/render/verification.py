"""Inspection -> the section that says what its numbers prove of it, for a terminal or a pipe."""

from collections.abc import Iterator

from rich.text import Text

from normscope.inspection import Inspection
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.page import Page, to_text
from normscope.render.styles import NOTE, PATH, QUIET
from normscope.render.verified import (
    ROWS_HEADER,
    Disagreement,
    VerifiedSummary,
    summarize_verification,
)
from normscope.render.visible import visible

_INDENT = 2


def render_verification(inspection: Inspection, page: Page, *, named: bool = False) -> str:
    """Return how many verdicts agree with their numbers, and each that does not, in full.

    "" for an inspection that was not verified. `named` puts the target above it, where several
    are told of.
    """
    if inspection.verification is None:
        return ""
    summary = summarize_verification(inspection.verification)
    title = [Text(visible(inspection.target), style=PATH)] if named else []
    return to_text([*title, *_lines(summary, page)], page)


def _lines(summary: VerifiedSummary, page: Page) -> Iterator[Text]:
    yield from paragraph(summary.heading, width=page.width, indent=_INDENT, hang=2)
    for text in summary.counts:
        yield from paragraph(text, width=page.width, indent=2 * _INDENT)
    for text in summary.not_checked:
        yield from paragraph(text, width=page.width, indent=2 * _INDENT, hang=2, style=QUIET)
    for item in summary.disagreements:
        yield Text("")
        yield from _disagreement(item, page)


def _disagreement(item: Disagreement, page: Page) -> Iterator[Text]:
    told = f"{', '.join(item.where)}: {item.verdict}"
    yield from paragraph(told, width=page.width, indent=_INDENT, hang=2, style=NOTE)
    entries = [Entry(lead=(Cell(what),), details=((Cell(a), Cell(b)),)) for what, a, b in item.rows]
    what, predicted, observed = ROWS_HEADER
    header = Entry(
        lead=(Cell(what, QUIET),), details=((Cell(predicted, QUIET), Cell(observed, QUIET)),)
    )
    yield from laid_out(entries, width=page.width, indent=2 * _INDENT, header=header)
