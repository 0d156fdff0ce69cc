"""Inspection -> each distinct block, drawn as a textbook draws it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from normscope.inspection import BlockReport, Inspection, Placement
from normscope.render.drawing import draw
from normscope.render.figures import counted, index_ranges
from normscope.render.footnotes import Footnotes
from normscope.render.grid import paragraph
from normscope.render.page import Page, to_text
from normscope.render.rungs import Rung, rungs_of, runs_text
from normscope.render.styles import NOTE, PATH, placement_style
from normscope.render.summary import summarize
from normscope.render.table import title_lines
from normscope.render.visible import visible

WIDEST = 80
_INDENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """What blocks that are drawn alike have in common."""

    rungs: tuple[Rung, ...]
    notes: tuple[str, ...]
    placement: Placement


def render_diagram(inspection: Inspection, page: Page) -> str:
    """Return a drawing for each distinct block, under the places where it stands.

    It is at most 80 columns wide, or as wide as the page. Equal blocks are drawn once, also those
    of different stacks.
    """
    lines = title_lines(summarize(inspection), page)
    width = min(page.width or WIDEST, WIDEST)
    for figure, places in _figures(inspection).items():
        lines += [Text(""), *_caption(figure, places, inspection)]
        lines += [
            Text(" " * 2 * _INDENT + line)
            for line in draw(figure.rungs, width=width - 2 * _INDENT, ascii_only=page.ascii_only)
        ]
        for number, note in enumerate(figure.notes, start=1):
            lines += paragraph(
                f"({number}) {note}", width=width, indent=2 * _INDENT, hang=4, style=NOTE
            )
    return to_text(lines if inspection.blocks else [*lines, Text("  no blocks")], page)


def _figures(inspection: Inspection) -> dict[_Figure, dict[str, list[BlockReport]]]:
    """Return each figure with the blocks that it is of, by stack."""
    norms = {norm.name: norm for norm in inspection.norms}
    figures: dict[_Figure, dict[str, list[BlockReport]]] = {}
    for block in inspection.blocks:
        footnotes = Footnotes()
        figure = _Figure(
            rungs=rungs_of(block, norms, footnotes),
            notes=footnotes.sentences,
            placement=block.placement,
        )
        place = block.path if block.stack is None else block.stack
        figures.setdefault(figure, {}).setdefault(place, []).append(block)
    return figures


def _caption(
    figure: _Figure, places: dict[str, list[BlockReport]], inspection: Inspection
) -> Iterator[Text]:
    for place, blocks in places.items():
        line = Text(" " * _INDENT).append(visible(place) or "the model itself", style=PATH)
        line.append(f"   {_extent(blocks, _all_of(place, inspection))}   ")
        yield line.append(figure.placement.value, style=placement_style(figure.placement))


def _all_of(place: str, inspection: Inspection) -> list[BlockReport]:
    return [block for block in inspection.blocks if place in (block.stack, block.path)]


def _extent(blocks: Sequence[BlockReport], whole: Sequence[BlockReport]) -> str:
    runs = runs_text(block.calls for block in blocks)
    if len(blocks) == len(whole):
        return f"{counted(len(blocks), 'block')}{', all alike' if len(blocks) > 1 else ''}{runs}"
    indices = index_ranges(_indices(blocks))
    return f"block{'s' if len(blocks) > 1 else ''} {indices} of {len(whole)}{runs}"


def _indices(blocks: Iterable[BlockReport]) -> Iterator[int]:
    return (block.index for block in blocks if block.index is not None)
