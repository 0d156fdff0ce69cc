"""Inspection -> markdown for a pull request or a job summary."""

import re
from collections.abc import Iterable, Iterator, Sequence

from normscope.inspection import Answer, BlockReport, Inspection, Uninspectable
from normscope.render.blocks import norms_text
from normscope.render.diagram import render_diagram
from normscope.render.explain import render_explanation
from normscope.render.figures import counted
from normscope.render.footnotes import marked
from normscope.render.inert import inert_line
from normscope.render.norm_rows import norm_rows
from normscope.render.norms import columns_of, heading_of
from normscope.render.overview import any_verified, overview_columns, overview_row
from normscope.render.page import PLAIN
from normscope.render.stack_summary import BranchSummary, StackSummary, calls_text
from normscope.render.summary import Summary, summarize
from normscope.render.visible import visible
from normscope.render.words import SITE_WORDS

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
_TICKS = re.compile(r"`+")
_MENTION = re.compile(r"([@#])(?=\w)")


def render_markdown(inspection: Inspection) -> str:
    """Return the default view as markdown."""
    summary = summarize(inspection)
    paragraphs = (
        f"### {escaped(summary.class_name)} · {code(summary.target)}",
        _verdict(summary),
        table(("stack", "blocks", "branch", "placement", "formula", "norms"), _rows(summary)),
        listed(_points(summary, inspection)),
    )
    return joined(paragraphs)


def render_markdown_overview(answers: Sequence[Answer]) -> str:
    """Return the comparison of several targets, and why some have no answer."""
    verified = any_verified(answers)
    rows = [_overview_cells(answer, verified=verified) for answer in answers]
    failures = (answer for answer in answers if isinstance(answer, Uninspectable))
    reasons = listed(f"{code(visible(f.target))}: {escaped(visible(f.message))}" for f in failures)
    return joined((table(overview_columns(verified=verified), rows), reasons))


def render_markdown_norms(inspection: Inspection) -> str:
    """Return the norm table as markdown."""
    rows = norm_rows(inspection)
    if not rows:
        return "No norm was found.\n"
    columns = columns_of(rows)
    cells = [(code(row.name), *(escaped(fact(row)) for _, fact in columns)) for row in rows]
    heading = (escaped(text) for text in heading_of(inspection, rows))
    return joined((*heading, table(("name", *(name for name, _ in columns)), cells)))


def render_markdown_blocks(inspection: Inspection) -> str:
    """Return every block as markdown, one row a branch."""
    rows = [
        (
            code(visible(block.path)),
            branch.kind.value,
            branch.placement.value,
            code(visible(branch.formula)),
            escaped(norms_text(branch, block)),
        )
        for block in inspection.blocks
        for branch in block.branches
    ]
    return joined((table(("block", "branch", "placement", "formula", "norms"), rows),))


def render_markdown_explanation(inspection: Inspection, block: BlockReport) -> str:
    """Return the evidence of one block as a fenced text."""
    return _fenced(render_explanation(inspection, block, PLAIN))


def render_markdown_diagram(inspection: Inspection) -> str:
    """Return the drawings of the blocks as a fenced text."""
    return _fenced(render_diagram(inspection, PLAIN))


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def code(text: str) -> str:
    """Return the text as a code span that nothing in it can end, safe in a table cell."""
    if not text:
        return ""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", r"\|")


def escaped(text: str) -> str:
    """Return the text with every character escaped that markdown or HTML would read.

    It mentions no person and refers to no issue either.
    """
    return _MENTION.sub(r"\1&#8203;", _SPECIAL.sub(r"\\\1", text))


def joined(paragraphs: Iterable[str]) -> str:
    """Return paragraphs as one text that steers nothing; empty ones are left out."""
    text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    return "".join(f"{inert_line(line)}\n" for line in text.split("\n"))


def listed(items: Iterable[str]) -> str:
    """Return a bullet list."""
    return "\n".join(f"- {item}" for item in items)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; without rows there is none."""
    if not rows:
        return ""
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _verdict(summary: Summary) -> str:
    formulas = ", ".join(code(line.formula) for line in summary.verdict)
    norms = f"; {escaped(summary.norms_of_blocks)}" if summary.norms_of_blocks else ""
    return f"**{escaped(summary.placement.value)}** {formulas}{norms}. {escaped(summary.size)}."


def _rows(summary: Summary) -> list[tuple[str, ...]]:
    return [row for stack in summary.stacks for row in _stack_rows(stack)]


def _stack_rows(stack: StackSummary) -> Iterator[tuple[str, ...]]:
    for group in stack.groups:
        blocks = f"{group.indices}{calls_text(group.block.calls)}"
        for branch in group.block.branches:
            parallel = " (parallel)" if group.block.remark else ""
            yield (
                code(stack.path),
                blocks,
                f"{branch.kind}{parallel}",
                escaped(marked(branch.placement.value, branch.footnote)),
                code(branch.formula),
                _norms(branch),
            )


def _norms(branch: BranchSummary) -> str:
    return "; ".join(
        f"{SITE_WORDS[norm.site]}: {code(norm.name)}"
        + (f" {escaped(norm.facts)}" if norm.facts else "")
        + ("" if norm.footnote is None else f" ({norm.footnote})")
        for norm in branch.norms
    )


def _outside(summary: Summary) -> Iterator[str]:
    for norm in summary.outside:
        names = ", ".join(code(name) for name in norm.names)
        facts = f" {escaped(norm.facts)}" if norm.facts else ""
        yield marked(f"{norm.label}: {names}{facts}", norm.footnote)


def _points(summary: Summary, inspection: Inspection) -> Iterator[str]:
    yield from _outside(summary)
    yield from (escaped(f"{what}: {roles}") for what, roles in summary.norms)
    yield from map(escaped, summary.remarks)
    for number, sentence in enumerate(summary.footnotes, start=1):
        yield f"({number}) {escaped(sentence)}"
    yield from _unsure(inspection)


def _unsure(inspection: Inspection) -> Iterator[str]:
    if inspection.assumptions:
        yield f"{counted(len(inspection.assumptions), 'assumption')} in place of data"
    for warning in inspection.warnings:
        yield f"warning: {escaped(visible(warning))}"


def _overview_cells(answer: Answer, *, verified: bool) -> tuple[str, ...]:
    target, *rest = overview_row(answer, verified=verified)
    return (code(target), *map(escaped, rest))
