"""Inspection -> the view that is understood in ten seconds."""

from collections.abc import Iterator
from dataclasses import replace

from rich.cells import cell_len
from rich.text import Text

from normscope.inspection import Inspection, Placement
from normscope.render.figures import counted
from normscope.render.footnotes import marked
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.page import Page, to_text
from normscope.render.stack_summary import (
    BlockGroup,
    BranchSummary,
    SitedNorm,
    StackSummary,
    calls_text,
)
from normscope.render.styles import FORMULA, NOTE, PATH, QUIET, TITLE, placement_style
from normscope.render.summary import OutsideNorm, Summary, VerdictLine, summarize
from normscope.render.visible import visible
from normscope.render.words import SITE_WORDS

_INDENT = 2


def render_table(inspection: Inspection, page: Page, *, verbose: bool = False) -> str:
    """Return the default view: verdict, stacks, other norms, remarks.

    With `verbose` every assumption and warning is listed instead of counted.
    """
    summary = summarize(inspection)
    sections = (
        title_lines(summary, page),
        _verdict_lines(summary, page),
        [line for stack in summary.stacks for line in _stack_lines(stack, page)]
        + _outside_lines(summary.outside, page),
        _norm_lines(summary, page),
        _remark_lines(summary, page),
        _assumption_lines(inspection, page, verbose=verbose),
    )
    return to_text(_spaced(sections), page)


def title_lines(summary: Summary, page: Page) -> list[Text]:
    """Return the line that names what is looked at."""
    pieces = (
        Cell(summary.class_name, TITLE),
        Cell(summary.target, ""),
        Cell(summary.size, QUIET),
    )
    lines = [Text().append(pieces[0].text, style=pieces[0].style)]
    for piece in pieces[1:]:
        if page.width is not None and lines[-1].cell_len + 3 + cell_len(piece.text) > page.width:
            lines.append(Text(" " * (_INDENT - 3)))
        lines[-1].append("   ").append(piece.text, style=piece.style)
    return lines


def _spaced(sections: tuple[list[Text], ...]) -> Iterator[Text]:
    filled = [section for section in sections if section]
    for number, section in enumerate(filled):
        if number:
            yield Text("")
        yield from section


def _verdict_lines(summary: Summary, page: Page) -> list[Text]:
    norms = summary.norms_of_blocks
    if len(summary.verdict) == 1 and summary.verdict[0].placement is summary.placement:
        line = summary.verdict[0]
        lead = (_placement(line.placement), Cell(line.formula, FORMULA))
        entry = Entry(lead=lead, details=((Cell("", ""), Cell(norms)),))
        return laid_out([entry], width=page.width, indent=_INDENT)
    head = Entry(lead=(_placement(summary.placement),))
    return [
        *laid_out([head], width=page.width, indent=_INDENT),
        *_formula_lines(summary.verdict, page),
        *(paragraph(norms, width=page.width, indent=2 * _INDENT) if norms else ()),
    ]


def _formula_lines(verdict: tuple[VerdictLine, ...], page: Page) -> list[Text]:
    total = sum(line.branches for line in verdict)
    entries = [
        Entry(
            lead=(_placement(line.placement), Cell(line.formula, FORMULA)),
            details=((Cell(f"{line.branches} of {total} branches", QUIET),),),
        )
        for line in verdict
    ]
    return laid_out(entries, width=page.width, indent=2 * _INDENT)


def _placement(placement: Placement) -> Cell:
    return Cell(placement.value, placement_style(placement))


def _stack_lines(stack: StackSummary, page: Page) -> list[Text]:
    indent = 2 * _INDENT + (_INDENT if len(stack.groups) > 1 else 0)
    entries = [
        entry
        for group in stack.groups
        for entry in _group_entries(group, page, indent, one_of_many=len(stack.groups) > 1)
    ]
    return [
        Text(" " * _INDENT).append(stack.path, style=PATH).append(f"   {stack.size}"),
        *laid_out(entries, width=page.width, indent=indent),
    ]


def _group_entries(
    group: BlockGroup, page: Page, indent: int, *, one_of_many: bool
) -> Iterator[Entry]:
    before: list[Text] = []
    if one_of_many:
        heading = f"{group.indices}{calls_text(group.block.calls)}"
        before += paragraph(heading, width=page.width, indent=indent - _INDENT, style=PATH)
    if group.block.remark:
        before += paragraph(group.block.remark, width=page.width, indent=indent, style=QUIET)
    for branch in group.block.branches:
        yield replace(_branch_entry(branch), before=tuple(before))
        before = []


def _branch_entry(branch: BranchSummary) -> Entry:
    return Entry(
        lead=(
            Cell(branch.kind),
            Cell(
                marked(branch.placement.value, branch.footnote), placement_style(branch.placement)
            ),
            Cell(branch.formula, FORMULA),
        ),
        details=tuple(_norm_cells(norm) for norm in branch.norms),
    )


def _norm_cells(norm: SitedNorm) -> tuple[Cell, ...]:
    return (
        Cell(SITE_WORDS[norm.site], QUIET),
        Cell(marked(norm.name, norm.footnote)),
        Cell(norm.facts, QUIET),
    )


def _outside_lines(norms: tuple[OutsideNorm, ...], page: Page) -> list[Text]:
    entries = [
        Entry(
            lead=(Cell(label, PATH),),
            details=tuple(
                (Cell(marked(name, norm.footnote)), Cell(norm.facts, QUIET))
                for norm in norms
                if norm.label == label
                for name in norm.names
            ),
        )
        for label in dict.fromkeys(norm.label for norm in norms)
    ]
    return laid_out(entries, width=page.width, indent=_INDENT)


def _norm_lines(summary: Summary, page: Page) -> list[Text]:
    entries = [
        Entry(lead=(Cell(what),), details=((Cell(roles, QUIET),),)) for what, roles in summary.norms
    ]
    return laid_out(entries, width=page.width, indent=_INDENT)


def _remark_lines(summary: Summary, page: Page) -> list[Text]:
    numbered = (f"({n}) {sentence}" for n, sentence in enumerate(summary.footnotes, start=1))
    hanging = [(remark, 2) for remark in summary.remarks] + [(note, 4) for note in numbered]
    return [
        line
        for text, hang in hanging
        for line in paragraph(text, width=page.width, indent=_INDENT, hang=hang, style=NOTE)
    ]


def _assumption_lines(inspection: Inspection, page: Page, *, verbose: bool) -> list[Text]:
    counts = [
        counted(len(found), noun)
        for found, noun in (
            (inspection.assumptions, "assumption"),
            (inspection.warnings, "warning"),
        )
        if found
    ]
    if not counts:
        return []
    if not verbose:
        text = f"{' and '.join(counts)}; --verbose lists them"
        return paragraph(text, width=page.width, indent=_INDENT, style=QUIET)
    listed = (
        *(
            f"assumed at {a.where or 'the root'}: {a.question} is {a.answer}"
            for a in inspection.assumptions
        ),
        *(f"warning: {text}" for text in inspection.warnings),
    )
    return [
        line
        for text in listed
        for line in paragraph(visible(text), width=page.width, indent=_INDENT, hang=4)
    ]
