"""Inspection -> what its numbers prove of it, as markdown."""

from collections.abc import Iterator

from normscope.inspection import Inspection
from normscope.render.markdown import code, escaped, joined, listed, table
from normscope.render.verified import ROWS_HEADER, Disagreement, summarize_verification
from normscope.render.visible import visible


def render_markdown_verification(inspection: Inspection, *, named: bool = False) -> str:
    """Return how many verdicts agree with their numbers; "" for one that was not verified."""
    if inspection.verification is None:
        return ""
    summary = summarize_verification(inspection.verification)
    title = f"### {code(visible(inspection.target))}" if named else ""
    points = (*summary.counts, *summary.not_checked)
    heading = f"**{escaped(summary.heading)}**"
    return joined((title, heading, listed(map(escaped, points)), *_all(summary.disagreements)))


def _all(items: tuple[Disagreement, ...]) -> Iterator[str]:
    for item in items:
        yield f"{', '.join(map(code, item.where))}: {escaped(item.verdict)}"
        yield table(ROWS_HEADER, [tuple(map(escaped, row)) for row in item.rows])
