"""Residual adds -> those whose sum only one branch reads, while the stream goes on without it.

In x + g(x + f(x)) the inner sum is what g reads, and the skip goes around both (Zamba adds its
shared transformer to the input of a mixer only).
"""

from collections.abc import Mapping, Sequence

from normscope.graph import Graph
from normscope.operations import NORMALIZE, mixes
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.branches import Branch
from normscope.residuals.kinds import own_nodes
from normscope.residuals.steps import StepKind, is_activation, steps_back

_USES = 48


def side_adds(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    branches: Mapping[int, Sequence[Branch]],
    parents: Mapping[int, int | None],
) -> dict[int, int]:
    """Return the inner adds that share their start with the add around them, with that add."""
    starts: dict[int, list[int]] = {}
    for outer in parents:
        starts.setdefault(found[outer].stream, []).append(outer)
    sides: dict[int, int] = {}
    for node, add in found.items():
        if node in parents or add.sign != "+" or add.steps:
            continue
        for outer in starts.get(add.stream, ()):
            read = any(_reads_only(graph, branch, node) for branch in branches[outer])
            if read and _opens_a_branch(graph, node) and _computes(graph, branches[node]):
                sides[node] = outer
                break
    return sides


def _reads_only(graph: Graph, branch: Branch, inner: int) -> bool:
    """Tell whether a branch takes the stream from the inner sum alone.

    Queries and keys with a position added to them stand beside values without it.
    """
    if inner not in branch.nodes:
        return False
    beyond = own_nodes(graph, branch.nodes, frozenset({inner}))
    return all(branch.add.stream not in graph.nodes[index].operands for index in beyond)


def _opens_a_branch(graph: Graph, node: int) -> bool:
    """Tell whether every use of a sum leads to mixing operations, at most through a norm."""
    pending, seen = [node], {node}
    for value in pending:
        if value in graph.outputs or len(seen) > _USES:
            return False
        for index in graph.consumers[value]:
            reader = graph.nodes[index]
            if mixes(reader.operation) or index in seen:
                continue
            same = any(
                step.value == value and step.kind is StepKind.SAME
                for step in steps_back(graph, index)
            )
            if not same and reader.operation != NORMALIZE:
                return False
            seen.add(index)
            pending.append(index)
    return True


def _computes(graph: Graph, branches: Sequence[Branch]) -> bool:
    """Tell whether the inner branch has products by stored weights of its own, at least two."""
    return all(
        sum(
            mixes(graph.nodes[index].operation)
            and any(not is_activation(graph, operand) for operand in graph.nodes[index].operands)
            for index in branch.own
        )
        >= 2
        for branch in branches
    )
