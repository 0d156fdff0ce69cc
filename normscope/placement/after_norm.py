"""Skips that are taken from a norm's output: `n = N(x); n + f(n)`.

Where every block of a stack does so, the stream itself is normalized: seen from the stream that is
post-norm (MiniMax), and the norm of the next block is the trunk norm of this one. Where a few
blocks do (the first of a BiT stage, the fusion layer of Grounding DINO), those are the odd ones.
"""

from collections import Counter
from collections.abc import Mapping

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import ACTIVATIONS, NORMALIZE
from normscope.placement.blocks import BlockKey, is_computed_in
from normscope.placement.lists import is_within, pattern
from normscope.residuals import ResidualStream, StreamAdd
from normscope.residuals.steps import StepKind, steps_back

_STEPS = 24


def shared_trunk_norms(
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
    trunks: Mapping[int, int],
) -> dict[int, int]:
    """Drop the trunk norms of a list where most of their like are no trunk norms.

    The first norm of a block reads the sum before it alone where that block leaves the skip out,
    and so does a norm behind the last sum of a side stream. A block that is post-norm throughout,
    by norms of its own, is so whatever the others of its list are.
    """
    own = _post_norm_blocks(norms, stream, blocks, trunks)
    alike = Counter(pattern(norm.owner) for norm in norms.values())
    counts = Counter(pattern(norms[output].owner) for output in trunks.values())
    return {
        node: output
        for node, output in trunks.items()
        if blocks[node] in own
        or counts[pattern(norms[output].owner)] * 2 >= alike[pattern(norms[output].owner)]
    }


def _post_norm_blocks(
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
    trunks: Mapping[int, int],
) -> frozenset[BlockKey]:
    """Return the blocks whose every sum has a bare branch and, behind it, a norm of the block."""
    listed = {blocks[node] for node in stream.adds if blocks[node].listed}
    others = {
        blocks[node]
        for node, add in stream.adds.items()
        if node not in trunks
        or not is_within(norms[trunks[node]].owner, blocks[node].path)
        or not all(entry.bare for branch in add.branches for entry in branch.entries)
    }
    return frozenset(listed - others)


def norms_before_skips(
    graph: Graph,
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
    trunks: Mapping[int, int],
) -> dict[int, int]:
    """Return the norm whose output is both skip and branch of an add, for the blocks that are odd.

    The norm lies in the add's own block, ends no other block, and the branch has none of its own.
    """
    on_trunk = set(trunks.values())
    shared = {pattern(norms[output].owner) for output in on_trunk}
    found: dict[int, int] = {}
    for node, add in stream.adds.items():
        output = _norm_behind(graph, add)
        if output is None or output in on_trunk or node in trunks:
            continue
        norm = norms[output]
        if is_computed_in(graph, norm.input, blocks[node].path, stream):
            continue
        bare = all(entry.bare for branch in add.branches for entry in branch.entries)
        own = blocks[node].path
        inside = is_within(norm.owner, own) if own else len(stream.adds) == 1
        if bare and inside and pattern(norm.owner) not in shared:
            found[node] = output
    return found


def _norm_behind(graph: Graph, add: StreamAdd) -> int | None:
    value = add.add.stream
    for _ in range(_STEPS):
        if graph.nodes[value].operation == NORMALIZE:
            return value
        if graph.nodes[value].operation in ACTIVATIONS:
            value = graph.nodes[value].operands[0]
            continue
        steps = [step for step in steps_back(graph, value) if step.kind is StepKind.SAME]
        if len(steps) != 1:
            return None
        value = steps[0].value
    return None
