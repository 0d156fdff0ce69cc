"""One block of an Inspection -> the chain of operations that proves its verdict."""

from collections.abc import Sequence

from rich.text import Text

from normscope.inspection import BlockReport, BranchReport, Evidence, Inspection, NormReport
from normscope.render.blocks import norms_text
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.names import within_block
from normscope.render.norm_facts import cast_text
from normscope.render.page import Page, to_text
from normscope.render.styles import FORMULA, PATH, QUIET, placement_style
from normscope.render.visible import visible


def render_explanation(inspection: Inspection, block: BlockReport, page: Page) -> str:
    """Return the evidence of each branch of `block`, in order of execution."""
    title = Text().append(visible(block.path), style=PATH)
    title.append(f"   {visible(inspection.model.class_name)}   {visible(inspection.target)}")
    lines = [title]
    for branch in block.branches:
        lines += [Text(""), *_verdict(branch, block, page)]
        lines += _casts(branch, block, inspection.norms, page)
        lines += _chain(branch, block, page)
    return to_text(lines, page)


def _verdict(branch: BranchReport, block: BlockReport, page: Page) -> list[Text]:
    entry = Entry(
        lead=(
            Cell(branch.kind.value, PATH),
            Cell(branch.placement.value, placement_style(branch.placement)),
            Cell(visible(branch.formula), FORMULA),
        ),
        details=((Cell(norms_text(branch, block)),),),
    )
    lines = laid_out([entry], width=page.width, indent=2)
    if branch.reason is not None:
        lines += paragraph(f"because {visible(branch.reason)}", width=page.width, indent=4)
    return lines


def _casts(
    branch: BranchReport, block: BlockReport, norms: Sequence[NormReport], page: Page
) -> list[Text]:
    """Say where the branch's norms cast back in half precision; of each, where they differ."""
    own = {name for names in branch.norms.values() for name in names}
    casts: dict[str, dict[str, None]] = {}
    for norm in norms:
        if norm.name in own and cast_text(norm):
            casts.setdefault(cast_text(norm), {})[within_block(norm.name, block.path)] = None
    if not casts:
        return []
    told = [cast if len(casts) == 1 else f"{cast} ({', '.join(casts[cast])})" for cast in casts]
    return paragraph(f"in half precision {', '.join(told)}", width=page.width, indent=4)


def _chain(branch: BranchReport, block: BlockReport, page: Page) -> list[Text]:
    if not branch.evidence:
        return [Text("    no evidence was recorded", style=QUIET)]
    steps = [_step(step, block) for step in branch.evidence]
    return laid_out(steps, width=page.width, indent=4)


def _step(step: Evidence, block: BlockReport) -> Entry:
    named = not step.module or step.operation.startswith(step.module)
    operation = step.operation if named else f"{step.module}: {step.operation}"
    return Entry(
        lead=(
            Cell(visible(step.step), QUIET),
            Cell(visible(operation.removeprefix(f"{block.path}."))),
        ),
        details=((Cell(visible(step.source), QUIET),),),
    )
