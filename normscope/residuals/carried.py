"""What a value carries on: the values behind it, through everything but real computation.

Wider than the steps of a skip: activations and sums of two values count as carrying too, so that
blocks that are linked by them are found in a row.
"""

from collections.abc import Callable, Container

from normscope.graph import Graph
from normscope.operations import ACTIVATIONS, POOLING
from normscope.residuals.steps import StepKind, is_activation, steps_back

_VALUES = 96
"""Values that a link may pass (window shifts, patch merging, streams stacked)."""


def carried_values(
    graph: Graph,
    value: int,
    sums: Container[int],
    operands: Callable[[Graph, int], list[int]] | None = None,
) -> list[int]:
    """Return `value` and the values that it carries on, back to the nearest of the `sums`.

    `operands` gives the values one operation back; `carried_operands` unless given.
    """
    step = operands or carried_operands
    pending, seen = [value], {value}
    for current in pending:
        if current in sums or len(seen) > _VALUES:
            continue
        for operand in step(graph, current):
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return pending


def sums_behind(
    graph: Graph,
    value: int,
    sums: Container[int],
    operands: Callable[[Graph, int], list[int]] | None = None,
) -> list[int]:
    """Return the nearest of the `sums` that a value carries on, nearest first."""
    return [found for found in carried_values(graph, value, sums, operands) if found in sums]


def carried_operands(graph: Graph, index: int) -> list[int]:
    """Return the operands that a value carries on."""
    node = graph.nodes[index]
    if node.operation in ACTIVATIONS and node.operands:
        return [node.operands[0]]
    if node.operation in {"add", "sub"} and len(node.operands) == 2:
        flowing = [operand for operand in node.operands if is_activation(graph, operand)]
        if len(flowing) == 2:
            return flowing
    return [step.value for step in steps_back(graph, index) if step.kind is not StepKind.GATE]


def pooled_operands(graph: Graph, index: int) -> list[int]:
    """Return the operands that a value carries on or pools; gates merge parallel streams."""
    node = graph.nodes[index]
    pools = node.operation in POOLING or node.operation in {"mean", "amax", "max", "sum"}
    if (pools or node.operation in ACTIVATIONS) and node.operands:
        return [node.operands[0]]
    return [step.value for step in steps_back(graph, index)]
