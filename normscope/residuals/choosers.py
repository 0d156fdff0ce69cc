"""Residual adds -> those of a stream that only chooses: the state of a router, carried on.

Where a router adds what it reads to the state of the router before it (Zaya), its sums are a stream
of their own; but all that the model takes from them are probabilities and indices.
"""

from collections.abc import Mapping, Sequence

from normscope.graph import Graph
from normscope.operations import INTEGER_DTYPES, SOFTMAX
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.branches import Branch

_CHOICES = SOFTMAX | {"topk", "argmax", "argsort"}


def without_choosers(
    graph: Graph, found: Mapping[int, ResidualAdd], branches: Mapping[int, Sequence[Branch]]
) -> dict[int, ResidualAdd]:
    """Leave out sums that reach no output but by a choice, and that read a stream that does."""
    carrying: set[int] = set()
    for node in sorted(found, reverse=True):
        if _is_carried_on(graph, node, found, carrying):
            carrying.add(node)
    return {
        node: add
        for node, add in found.items()
        if node in carrying or all(carrying.isdisjoint(branch.nodes) for branch in branches[node])
    }


def _is_carried_on(
    graph: Graph, start: int, found: Mapping[int, ResidualAdd], carrying: set[int]
) -> bool:
    """Tell whether a value reaches an output, or a sum that does, otherwise than by a choice."""
    pending, seen = [start], {start}
    outputs = set(graph.outputs)
    for value in pending:
        if value in outputs:
            return True
        for index in graph.consumers[value]:
            if index in carrying:
                return True
            reader = graph.nodes[index]
            chosen = reader.operation in _CHOICES or reader.dtype in INTEGER_DTYPES
            if index not in seen and index not in found and not chosen:
                seen.add(index)
                pending.append(index)
    return False
