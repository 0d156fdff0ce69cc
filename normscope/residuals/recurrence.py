"""The nodes of a branch -> whether they carry a state over time."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from normscope.graph import Graph, Node, Origin
from normscope.operations import CASTS, MATRIX_PRODUCTS, RESHAPES
from normscope.residuals.ancestry import nodes_between

_STEPS = 3
"""Steps of a state that are no chance: a weight or a line of code that meets its own result."""
_KEEPING = CASTS | RESHAPES


def recurs(graph: Graph, ordered: Sequence[Node]) -> bool:
    """Tell whether a stored weight is applied again and again to what it computed (an LSTM)."""
    uses: dict[int, list[int]] = defaultdict(list)
    for node in ordered:
        if node.operation in MATRIX_PRODUCTS:
            for operand in node.operands:
                parameter = _parameter_behind(graph, operand)
                if parameter is not None:
                    uses[parameter].append(node.index)
    return any(
        len(found) >= _STEPS
        and all(nodes_between(graph, first, second) for first, second in pairwise(found[:_STEPS]))
        for found in uses.values()
    )


def scans(graph: Graph, ordered: Sequence[Node]) -> bool:
    """Tell whether a state goes from step to step as a·s + b, each of one size (a linear scan)."""
    lengths: dict[int, int] = {}
    for node in ordered:
        if node.operation != "add" or len(node.operands) != 2:
            continue
        before = [_state_before(graph, operand, node) for operand in node.operands]
        length = 1 + max((lengths.get(item, 0) for item in before if item is not None), default=0)
        lengths[node.index] = length
        if length > _STEPS:
            return True
    return False


def _state_before(graph: Graph, operand: int, sums: Node) -> int | None:
    """Return the state s of a·s, written by the same module as the sum."""
    product = graph.nodes[_kept(graph, operand)]
    if product.operation != "mul" or product.shape != sums.shape or product.call != sums.call:
        return None
    earlier = [_kept(graph, item) for item in product.operands]
    states = [item for item in earlier if graph.nodes[item].operation == "add"]
    return max(states, default=None)


def _kept(graph: Graph, index: int) -> int:
    node = graph.nodes[index]
    while node.operation in _KEEPING and node.operands:
        node = graph.nodes[node.operands[0]]
    return node.index


def _parameter_behind(graph: Graph, index: int) -> int | None:
    found = graph.nodes[_kept(graph, index)]
    return found.index if found.origin is Origin.PARAMETER else None
