"""Answers of `stats` -> text in the chosen format and view."""

from collections.abc import Sequence
from enum import StrEnum

from normscope.cli.options import Format
from normscope.render.page import Page
from normscope.render.statistics_documents import (
    StatisticsAnswer,
    render_statistics_json,
    render_statistics_json_line,
)
from normscope.render.statistics_heatmap import render_statistics_heatmap
from normscope.render.statistics_markdown import render_statistics_markdown
from normscope.render.statistics_side_by_side import render_side_by_side
from normscope.render.statistics_summary import render_statistics
from normscope.render.statistics_tokens import render_statistics_tokens
from normscope.statistics import Statistics


class View(StrEnum):
    """What the table format shows."""

    SUMMARY = "summary"
    TOKENS = "tokens"
    HEATMAP = "heatmap"


_VIEWS = {
    View.SUMMARY: render_statistics,
    View.TOKENS: render_statistics_tokens,
    View.HEATMAP: render_statistics_heatmap,
}
_DOCUMENTS = frozenset({Format.JSON, Format.JSONL})


def streamed_statistics(answer: StatisticsAnswer, written: Format, *, of: int) -> str:
    """Return what is written as soon as one answer of `of` is known."""
    if written not in _DOCUMENTS:
        return ""
    whole = written is Format.JSON and of == 1
    return render_statistics_json(answer) if whole else render_statistics_json_line(answer)


def text_of_statistics(
    answers: Sequence[StatisticsAnswer], written: Format, view: View, page: Page
) -> str:
    """Return what is written when all answers are known."""
    if written in _DOCUMENTS:
        return ""
    measured = [answer for answer in answers if isinstance(answer, Statistics)]
    if written is Format.MARKDOWN:
        return "\n".join(render_statistics_markdown(answer) for answer in measured)
    if view is View.SUMMARY and len(answers) == len(measured) == 2:
        compared = render_side_by_side(measured[0], measured[1], page)
        if compared:
            return compared
    return "\n".join(_VIEWS[view](answer, page) for answer in measured)
