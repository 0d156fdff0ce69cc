"""Condensed graph -> the residual adds whose skip is itself projected.

The first block of a ResNet stage adds a convolution of the stream to its branch. Two projections
of one value are also summed in many places that are no residual add, so a sum counts only where the
skip is one linear step of a value from which the branch takes more, and where a stream that is
already known starts from it, or one module reads the value and returns the sum.
"""

from collections.abc import Iterator, Mapping

from normscope.graph import Graph
from normscope.operations import ACTIVATIONS, CONVOLUTIONS, MATRIX_PRODUCTS, POOLING
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.ancestry import nodes_between
from normscope.residuals.steps import Step, StepKind, is_activation, steps_back

_STEPS = 24


def find_projected_adds(graph: Graph, known: Mapping[int, ResidualAdd]) -> dict[int, ResidualAdd]:
    """Return the sums with a projected skip from which a known stream goes on."""
    found: dict[int, ResidualAdd] = {}
    found |= _whole_modules(graph, known)
    pending = [add.stream for add in [*known.values(), *found.values()]]
    for stream in pending:
        node = _sum_behind(graph, stream)
        if node is None or node in known or node in found:
            continue
        add = _projected(graph, node)
        if add is not None:
            found[node] = add
            pending.append(add.stream)
    return found


def _whole_modules(graph: Graph, known: Mapping[int, ResidualAdd]) -> dict[int, ResidualAdd]:
    """Return the sums that are all that a module returns, of its input projected and transformed.

    An activation in the branch tells it from a linear map in two parts (a low-rank adapter).
    """
    found: dict[int, ResidualAdd] = {}
    for call in graph.calls:
        node = _sum_behind(graph, call.outputs[0]) if call.outputs else None
        if node is None or node in known or node in found:
            continue
        add = _projected(graph, node)
        if add is None or add.stream not in call.inputs:
            continue
        between = nodes_between(graph, add.stream, add.branch)
        if any(graph.nodes[index].operation in ACTIVATIONS for index in between):
            found[node] = add
    return found


def _sum_behind(graph: Graph, value: int) -> int | None:
    """Return the sum of two activations that a value carries on, past views and activations."""
    for _ in range(_STEPS):
        node = graph.nodes[value]
        if node.operation == "add" and len(node.operands) == 2:
            flowing = all(is_activation(graph, operand) for operand in node.operands)
            if flowing:
                return value
        if node.operation in ACTIVATIONS:
            value = node.operands[0]
            continue
        steps = [step for step in steps_back(graph, value) if step.kind is not StepKind.GATE]
        if len(steps) != 1:
            return None
        value = steps[0].value
    return None


def _projected(graph: Graph, index: int) -> ResidualAdd | None:
    first, second = graph.nodes[index].operands
    if graph.nodes[first].shape != graph.nodes[second].shape:
        return None
    for skip, branch in ((first, second), (second, first)):
        for stream, steps in _behind_one_projection(graph, skip):
            between = nodes_between(graph, stream, branch)
            if stream != branch and _products(graph, between) >= 2:
                return ResidualAdd(node=index, stream=stream, skip=skip, branch=branch, steps=steps)
    return None


def _behind_one_projection(graph: Graph, value: int) -> Iterator[tuple[int, tuple[Step, ...]]]:
    """Yield the values that a skip carries on from behind exactly one linear operation."""
    steps: list[Step] = []
    projected = False
    for _ in range(_STEPS):
        node = graph.nodes[value]
        if projected:
            yield value, tuple(steps)
        following = [step for step in steps_back(graph, value) if step.kind is not StepKind.GATE]
        if len(following) == 1:
            step = following[0]
        elif node.operation in POOLING and node.operands:
            step = Step(kind=StepKind.SAME, node=value, value=node.operands[0])
        elif not projected and (operand := _projected_operand(graph, value)) is not None:
            projected = True
            step = Step(kind=StepKind.SCALE, node=value, value=operand, factor="P")
        else:
            return
        steps.append(step)
        value = step.value


def _projected_operand(graph: Graph, value: int) -> int | None:
    node = graph.nodes[value]
    if node.operation not in CONVOLUTIONS and node.operation not in MATRIX_PRODUCTS:
        return None
    flowing = [operand for operand in node.operands if is_activation(graph, operand)]
    return flowing[0] if len(flowing) == 1 else None


def _products(graph: Graph, nodes: frozenset[int]) -> int:
    return sum(
        graph.nodes[index].operation in CONVOLUTIONS
        or graph.nodes[index].operation in MATRIX_PRODUCTS
        for index in nodes
    )
