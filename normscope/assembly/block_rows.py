"""Placed blocks -> the reports of blocks and stacks."""

from collections.abc import Mapping, Sequence

from normscope.assembly.evidence import evidence_of
from normscope.assembly.norm_rows import joined
from normscope.graph import Graph
from normscope.inspection import BlockReport, BranchReport, StackReport, Variant
from normscope.norms import Norm
from normscope.placement.place import PlacedBlock
from normscope.placement.sites import PlacedBranch
from normscope.placement.vocabulary import Site, shared_name


def block_rows(
    graph: Graph, norms: Mapping[int, Norm], blocks: Sequence[PlacedBlock], prefix: str
) -> tuple[BlockReport, ...]:
    """Return one report a block; the runs of a block with equal facts are one report."""
    runs: dict[tuple[str, tuple[object, ...]], list[PlacedBlock]] = {}
    for block in blocks:
        facts = tuple(_facts(branch) for branch in block.branches)
        runs.setdefault((block.key.path, facts), []).append(block)
    return tuple(_block(graph, norms, same[0], len(same), prefix) for same in runs.values())


def _facts(placed: PlacedBranch) -> tuple[object, ...]:
    return (
        placed.branch.kind,
        placed.placement,
        tuple(placed.sites),
        placed.formula,
        placed.branch.parallel,
        placed.shared_norm,
    )


def _block(
    graph: Graph, norms: Mapping[int, Norm], block: PlacedBlock, calls: int, prefix: str
) -> BlockReport:
    return BlockReport(
        path=joined(prefix, block.key.path),
        stack=None if block.stack is None else joined(prefix, block.stack),
        index=block.index,
        calls=calls,
        placement=shared_name([branch.placement for branch in block.branches]),
        branches=tuple(_branch(graph, norms, branch, prefix) for branch in block.branches),
    )


def _branch(
    graph: Graph, norms: Mapping[int, Norm], placed: PlacedBranch, prefix: str
) -> BranchReport:
    add = placed.branch.add
    return BranchReport(
        kind=placed.branch.kind,
        placement=placed.placement,
        sites=tuple(site for site in Site if site in placed.sites),
        formula=placed.formula,
        parallel=placed.branch.parallel,
        shared_norm=placed.shared_norm,
        add=joined(prefix, graph.nodes[add.node].module) if placed.has_skip else None,
        norms={
            site: tuple(
                dict.fromkeys(
                    joined(prefix, norms[output].name) for output in placed.sites.get(site, ())
                )
            )
            for site in Site
        },
        reason=placed.reason,
        evidence=evidence_of(graph, norms, placed),
    )


def stack_rows(
    blocks: Sequence[BlockReport], endings: Mapping[str, tuple[str, ...]]
) -> tuple[StackReport, ...]:
    """Return one report a stack, its blocks with equal facts as variants.

    `endings` has the names of the norms behind the stacks whose stream ends.
    """
    stacks: dict[str, list[BlockReport]] = {}
    for block in blocks:
        if block.stack is not None:
            stacks.setdefault(block.stack, []).append(block)
    return tuple(_stack(path, members, endings.get(path)) for path, members in stacks.items())


def _stack(
    path: str, blocks: Sequence[BlockReport], ended_by: tuple[str, ...] | None
) -> StackReport:
    variants: dict[tuple[object, ...], list[BlockReport]] = {}
    for block in sorted(blocks, key=lambda block: block.index or 0):
        facts = tuple(
            (
                branch.kind,
                branch.placement,
                branch.sites,
                branch.formula,
                branch.parallel,
                branch.shared_norm,
            )
            for branch in block.branches
        )
        variants.setdefault(facts, []).append(block)
    return StackReport(
        path=path,
        blocks=len({block.path for block in blocks}),
        placement=shared_name([branch.placement for block in blocks for branch in block.branches]),
        variants=tuple(
            Variant(
                indices=tuple(sorted({block.index or 0 for block in same})),
                placement=shared_name(
                    [branch.placement for block in same for branch in block.branches]
                ),
            )
            for same in variants.values()
        ),
        ended_by=ended_by,
    )
