"""Residual adds -> those of predictions, which only tell another stream where to look.

A detector adds what each block's head says of the boxes to what it said before (D-FINE). Such a sum
meets its own earlier value only by way of the blocks, and enters these as a place to look at: in
the weights of an attention, or in the points that it samples. No stream of features does so.
"""

from collections.abc import Container, Mapping, Sequence

from normscope.graph import Graph, Node
from normscope.operations import FUSED_ATTENTION, INTEGER_DTYPES, SAMPLING, SOFTMAX, mixes
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.branches import Branch
from normscope.residuals.carried import sums_behind
from normscope.residuals.kinds import own_nodes

_SAMPLED = SAMPLING - {"_cdist_forward"}
_ASKING = frozenset({"query", "key", "q", "k", "attn_mask", "attn_bias"})


def without_steering(
    graph: Graph, found: Mapping[int, ResidualAdd], branches: Mapping[int, Sequence[Branch]]
) -> dict[int, ResidualAdd]:
    """Leave out sums whose branches read their stream only as a place for others to look at."""
    going_on = {
        earlier for add in found.values() for earlier in sums_behind(graph, add.stream, found)
    }
    kept: dict[int, ResidualAdd] = {}
    carrying: set[int] = set()
    for node, add in found.items():
        if any(_reads_its_stream(graph, branch, carrying) for branch in branches[node]):
            kept[node] = add
            carrying |= {node} & going_on
    return kept


def _reads_its_stream(graph: Graph, branch: Branch, sums: Container[int]) -> bool:
    own = own_nodes(graph, branch.nodes, sums)
    return _mixes_directly(graph, branch, own) or _enters_a_sum(graph, branch, sums)


def _mixes_directly(graph: Graph, branch: Branch, own: frozenset[int]) -> bool:
    """Tell whether a way from the stream to the branch's end mixes, and passes no other sum."""
    # Where the addition is a fused product, it mixes what the branch gives it.
    mixed = {branch.add.stream: mixes(graph.nodes[branch.add.node].operation)}
    for index in sorted(own):
        node = graph.nodes[index]
        behind = [mixed[operand] for operand in node.operands if operand in mixed]
        if behind:
            mixed[index] = any(behind) or mixes(node.operation)
    return mixed.get(branch.output, False)


def _enters_a_sum(graph: Graph, branch: Branch, sums: Container[int]) -> bool:
    """Tell whether the stream reaches a sum within the branch otherwise than as a place to look."""
    reached = {branch.add.stream}
    for index in sorted(branch.nodes):
        node = graph.nodes[index]
        if reached.isdisjoint(node.operands) or not _takes_up(node, reached):
            continue
        if index in sums:
            return True
        reached.add(index)
    return False


def _takes_up(node: Node, reached: set[int]) -> bool:
    """Tell whether a value is made of what reached it, and not only chosen by it."""
    if node.operation in SOFTMAX or node.dtype in INTEGER_DTYPES:
        return False
    if node.operation in FUSED_ATTENTION:
        return any(
            operand in reached and slot not in _ASKING
            for slot, operand in zip(node.slots, node.operands, strict=False)
        )
    if node.operation in _SAMPLED:
        return node.operands[0] in reached
    return True
