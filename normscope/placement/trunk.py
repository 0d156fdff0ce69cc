"""Sums -> the norm on the trunk behind each, and whether it belongs to the block or ends the stack.

A norm stands on the trunk if every use of the sum goes through it. Behind the last block of a
pre-norm stack the final norm looks the same, so it takes what the norm does next to tell: a trunk
norm feeds the next skip; behind the last block, it is one if its module lies in the block, or if
the other blocks of the stack have one in the same place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import NORMALIZE
from normscope.placement.blocks import BlockKey
from normscope.placement.lists import is_within, stack_path
from normscope.residuals import ResidualStream
from normscope.residuals.steps import StepKind, steps_back

_USES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkNorm:
    """The norm that every use of a sum goes through."""

    norm: int
    """Node of its output."""
    feeds_stream: bool
    """Whether a later residual add takes its stream value from the norm's output."""


def trunk_norms(
    graph: Graph,
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
) -> dict[int, int]:
    """Return the trunk norm of each sum that has one, by the index of the sum."""
    behind = {
        node: _only_norm_behind(graph, node, norms)
        for node, add in stream.adds.items()
        if not add.side
    }
    following = _following(stream)
    found: dict[int, int] = {}
    undecided: list[int] = []
    for node, norm in behind.items():
        if norm is None:
            continue
        later = following.get(node, ())
        if not blocks[node].listed and any(blocks[other].listed for other in later):
            # A lone add before a stack (a convolution that gives positions): the norm opens the
            # stack.
            continue
        if _lies_in_block(norms[norm], blocks[node]) or _stays_in_stack(node, later, blocks):
            found[node] = norm
        else:
            undecided.append(node)
    for node in undecided:
        norm = behind[node]
        if norm is not None and _as_its_siblings(node, stream, blocks, found):
            found[node] = norm
    return found


def _following(stream: ResidualStream) -> Mapping[int, Sequence[int]]:
    following: dict[int, list[int]] = {}
    for node, add in stream.adds.items():
        for earlier in add.previous:
            following.setdefault(earlier, []).append(node)
    return following


def _only_norm_behind(graph: Graph, node: int, norms: Mapping[int, Norm]) -> int | None:
    """Return the norm that all uses of a value go through, or None.

    One module called twice on the value is one norm.
    """
    pending, found = [node], set[int]()
    returned = set(graph.outputs)
    for value in pending:
        if value in returned or len(pending) > _USES:
            return None
        for index in graph.consumers[value]:
            reader = graph.nodes[index]
            if reader.operation == NORMALIZE:
                found.add(index)
            elif any(
                step.value == value and step.kind in {StepKind.SAME, StepKind.SCALE}
                for step in steps_back(graph, index)
            ):
                pending.append(index)
            else:
                return None
    modules = {norms[index].name for index in found}
    return min(found) if len(modules) == 1 else None


def _lies_in_block(norm: Norm, block: BlockKey) -> bool:
    return block.path != "" and is_within(norm.owner, block.path)


def _stays_in_stack(node: int, following: Sequence[int], blocks: Mapping[int, BlockKey]) -> bool:
    """Tell whether the stream goes on, behind the norm, in the same stack."""
    stack = stack_path(blocks[node].path)
    return any(
        blocks[later].listed == blocks[node].listed and stack_path(blocks[later].path) == stack
        for later in following
    )


def _as_its_siblings(
    node: int,
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
    found: Mapping[int, int],
) -> bool:
    """Decide the last sum of a stack by the last sums of the stack's other blocks."""
    stack = stack_path(blocks[node].path)
    last_sums: dict[BlockKey, int] = {}
    for other in stream.adds:
        if stack_path(blocks[other].path) == stack and blocks[other].listed:
            last_sums[blocks[other]] = other
    siblings = [other for other in last_sums.values() if other != node]
    if siblings and blocks[node].listed:
        return sum(other in found for other in siblings) * 2 > len(siblings)
    # A single block: a norm right behind its sum is the block's own unless the branch has one.
    add = stream.adds[node]
    return all(entry.bare for branch in add.branches for entry in branch.entries)
