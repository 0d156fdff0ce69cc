"""Stacks -> the norms that read the stream behind their last block."""

from collections.abc import Mapping

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.placement.blocks import BlockKey
from normscope.placement.lists import stack_path
from normscope.residuals import ResidualStream
from normscope.residuals.carried import pooled_operands, sums_behind


def norms_behind_stacks(
    graph: Graph,
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
) -> dict[str, tuple[int, ...]]:
    """Return the norms that read what the last sums of each stack carry on or pool, by its path.

    A stack whose stream goes on in further blocks is left out: it does not end there.
    """
    ends = _last_sums(stream, blocks)
    followed = {earlier for add in stream.adds.values() for earlier in add.previous}
    found: dict[str, tuple[int, ...]] = {
        stack: () for stack, sums in ends.items() if not sums <= followed
    }
    for output, norm in norms.items():
        behind = {
            *sums_behind(graph, norm.input, stream.adds),
            *sums_behind(graph, norm.input, stream.adds, pooled_operands),
        }
        for stack in found:
            if behind & ends[stack]:
                found[stack] = (*found[stack], output)
    return found


def _last_sums(stream: ResidualStream, blocks: Mapping[int, BlockKey]) -> dict[str, set[int]]:
    """Return the sums of each stack that none of its own blocks takes up."""
    going_on = {
        earlier
        for node, add in stream.adds.items()
        for earlier in add.previous
        if stack_path(blocks[earlier].path) == stack_path(blocks[node].path)
    }
    ends: dict[str, set[int]] = {}
    for node, add in stream.adds.items():
        if blocks[node].listed and node not in going_on and add.parent is None and not add.side:
            ends.setdefault(stack_path(blocks[node].path), set()).add(node)
    return ends
