"""Answers of `inspect` -> text in the chosen format and views."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from normscope.cli.options import Format
from normscope.errors import UsageError
from normscope.inspection import Answer, BlockReport, Inspection
from normscope.render.blocks import render_blocks
from normscope.render.diagram import render_diagram
from normscope.render.documents import render_json, render_json_line
from normscope.render.explain import render_explanation
from normscope.render.gains import render_gains
from normscope.render.markdown import (
    render_markdown,
    render_markdown_blocks,
    render_markdown_diagram,
    render_markdown_explanation,
    render_markdown_norms,
    render_markdown_overview,
)
from normscope.render.markdown_gains import render_markdown_gains
from normscope.render.norms import render_norms
from normscope.render.overview import render_overview
from normscope.render.page import Page
from normscope.render.table import render_table
from normscope.render.verification import render_verification
from normscope.render.verification_markdown import render_markdown_verification

_DOCUMENTS = frozenset({Format.JSON, Format.JSONL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """What is to be seen of each target."""

    blocks: bool = False
    norms: bool = False
    diagram: bool = False
    gains: bool = False
    explain: str | None = None
    verbose: bool = False

    @property
    def any_detail(self) -> bool:
        """Whether something beyond the default view was asked for."""
        asked = self.blocks or self.norms or self.diagram or self.gains
        return asked or self.explain is not None


def check_views(views: Views, written: Format, targets: int) -> None:
    """Raise `UsageError` for what cannot be combined, before any work is done."""
    for option, asked in (("--explain", views.explain is not None), ("--diagram", views.diagram)):
        if asked and written in _DOCUMENTS:
            raise UsageError(
                f"{option} is not part of {written.value}", "use --format table or markdown"
            )
    if views.explain is not None and targets != 1:
        raise UsageError("--explain takes one target", "name the one whose block is meant")


def streamed(answer: Answer, written: Format, *, of: int) -> str:
    """Return what is written as soon as one answer of `of` is known.

    JSON of one target is one indented document; several targets are one line each.
    """
    if written not in _DOCUMENTS:
        return ""
    return render_json(answer) if written is Format.JSON and of == 1 else render_json_line(answer)


def text_of(answers: Sequence[Answer], written: Format, views: Views, page: Page) -> str:
    """Return what is written when all answers are known."""
    if written in _DOCUMENTS:
        return ""
    pieces = (
        _markdown(answers, views) if written is Format.MARKDOWN else _text(answers, views, page)
    )
    return "\n".join(pieces)


def _text(answers: Sequence[Answer], views: Views, page: Page) -> Iterator[str]:
    if len(answers) > 1:
        yield render_overview(answers, page)
    for answer in _detailed(answers, views):
        if views.explain is not None:
            yield render_explanation(answer, block_named(views.explain, answer), page)
        if len(answers) > 1 or not views.any_detail:
            yield render_table(answer, page, verbose=views.verbose)
        if views.diagram:
            yield render_diagram(answer, page)
        if views.blocks:
            yield render_blocks(answer, page)
        if views.norms:
            yield render_norms(answer, page)
        if views.gains:
            yield render_gains(answer, page)
    for answer in _proved(answers, views):
        yield render_verification(answer, page, named=len(answers) > 1)


def _markdown(answers: Sequence[Answer], views: Views) -> Iterator[str]:
    if len(answers) > 1:
        yield render_markdown_overview(answers)
    for answer in _detailed(answers, views):
        if views.explain is not None:
            yield render_markdown_explanation(answer, block_named(views.explain, answer))
        if len(answers) > 1 or not views.any_detail:
            yield render_markdown(answer)
        if views.diagram:
            yield render_markdown_diagram(answer)
        if views.blocks:
            yield render_markdown_blocks(answer)
        if views.norms:
            yield render_markdown_norms(answer)
        if views.gains:
            yield render_markdown_gains(answer)
    for answer in _proved(answers, views):
        yield render_markdown_verification(answer, named=len(answers) > 1)


def _detailed(answers: Sequence[Answer], views: Views) -> list[Inspection]:
    """Several targets are compared; each alone is shown only where more was asked for."""
    inspections = [answer for answer in answers if isinstance(answer, Inspection)]
    return inspections if len(answers) == 1 or views.any_detail or views.verbose else []


def _proved(answers: Sequence[Answer], views: Views) -> list[Inspection]:
    """Of several targets, those that a short look at the comparison does not tell enough of."""
    verified = [a for a in answers if isinstance(a, Inspection) and a.verification is not None]
    if len(answers) == 1 or views.any_detail or views.verbose:
        return verified
    return [a for a in verified if a.verification is not None and not a.verification.agrees]


def block_named(path: str, inspection: Inspection) -> BlockReport:
    """Return the block at `path`; raises `UsageError` with the nearest paths otherwise."""
    for block in inspection.blocks:
        if block.path == path:
            return block
    known = [block.path for block in inspection.blocks]
    near = get_close_matches(path, known, n=3, cutoff=0.3) or known[:3]
    hint = f"for example: {', '.join(near)}; --blocks lists them" if near else "it has no blocks"
    raise UsageError(f"{inspection.target} has no block {path}", hint)
