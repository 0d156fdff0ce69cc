"""placed graphs + model facts -> Inspection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from normscope.assembly.block_rows import block_rows, stack_rows
from normscope.assembly.norm_rows import joined, norm_rows
from normscope.graph import Graph
from normscope.inspection import BlockReport, Inspection, ModelFacts, Placement
from normscope.norms import Norm
from normscope.placement.place import PlacedModel
from normscope.placement.vocabulary import shared_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRoot:
    """One traced root with everything that was found in it."""

    path: str
    """"" for the whole model, else the path of a tower that was traced alone."""
    graph: Graph
    """Condensed: each norm is one operation."""
    norms: tuple[Norm, ...]
    placed: PlacedModel


def assemble_inspection(
    target: str,
    model: ModelFacts,
    versions: Mapping[str, str],
    roots: Sequence[PlacedRoot],
    *,
    warnings: Sequence[str] = (),
) -> Inspection:
    """Put the facts of all roots into one report."""
    blocks = tuple(
        block
        for root in roots
        for block in block_rows(
            root.graph,
            {norm.output: norm for norm in root.norms},
            root.placed.blocks,
            root.path,
        )
    )
    return Inspection(
        target=target,
        versions=versions,
        model=model,
        weights="none",
        placement=_placement(blocks),
        stacks=stack_rows(blocks, _endings(roots)),
        blocks=blocks,
        norms=tuple(
            row
            for root in roots
            for row in norm_rows(root.graph, root.norms, root.placed, root.path)
        ),
        towers=tuple(root.path for root in roots if root.path),
        assumptions=tuple(
            replace(assumption, where=joined(root.path, assumption.where))
            for root in roots
            for assumption in root.graph.assumptions
        ),
        warnings=tuple(warnings),
    )


def _endings(roots: Sequence[PlacedRoot]) -> dict[str, tuple[str, ...]]:
    return {
        joined(root.path, stack): tuple(
            dict.fromkeys(
                joined(root.path, norm.name) for norm in root.norms if norm.output in outputs
            )
        )
        for root in roots
        for stack, outputs in root.placed.endings.items()
    }


def _placement(blocks: Sequence[BlockReport]) -> Placement:
    """Return the name that the branches of all stacks share; of all blocks where none is listed."""
    listed = [block for block in blocks if block.stack is not None] or list(blocks)
    return shared_name([branch.placement for block in listed for branch in block.branches])
