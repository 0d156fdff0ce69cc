"""Inspection -> every block, one row a branch."""

from collections.abc import Iterator

from normscope.inspection import BlockReport, BranchReport, Inspection, Site
from normscope.render.grid import Cell, Entry, laid_out
from normscope.render.names import siblings_as_one, within_block
from normscope.render.page import Page, to_text
from normscope.render.styles import FORMULA, PATH, QUIET, placement_style
from normscope.render.visible import visible
from normscope.render.words import SITE_WORDS

_HEADER = Entry(
    lead=(Cell("block", QUIET),),
    details=(tuple(Cell(n, QUIET) for n in ("branch", "placement", "formula", "norms")),),
)


def render_blocks(inspection: Inspection, page: Page) -> str:
    """Return the table of all blocks in order of execution.

    On a page without an edge each row names its block, so that a line found by grep is complete.
    """
    entries = [
        entry
        for block in inspection.blocks
        for entry in (_row_by_row(block) if page.width is None else [_as_one(block)])
    ]
    return to_text(laid_out(entries, width=page.width, header=_HEADER), page)


def norms_text(branch: BranchReport, block: BlockReport) -> str:
    """Return `input: input_layernorm; inside: self_attn.q_norm, self_attn.k_norm`."""
    return "; ".join(
        f"{SITE_WORDS[site]}: {', '.join(_names(branch.norms.get(site, ()), block))}"
        for site in Site
        if branch.norms.get(site)
    )


def _names(names: tuple[str, ...], block: BlockReport) -> tuple[str, ...]:
    return siblings_as_one(dict.fromkeys(within_block(name, block.path) for name in names))


def _row_by_row(block: BlockReport) -> Iterator[Entry]:
    for row in _rows(block):
        yield Entry(lead=(_path(block),), details=(row,))


def _as_one(block: BlockReport) -> Entry:
    return Entry(lead=(_path(block),), details=tuple(_rows(block)))


def _path(block: BlockReport) -> Cell:
    runs = "" if block.calls == 1 else f" ({block.calls} runs)"
    return Cell(f"{visible(block.path)}{runs}", PATH)


def _rows(block: BlockReport) -> Iterator[tuple[Cell, ...]]:
    for branch in block.branches:
        yield (
            Cell(branch.kind.value),
            Cell(branch.placement.value, placement_style(branch.placement)),
            Cell(visible(branch.formula), FORMULA),
            Cell(norms_text(branch, block)),
        )
