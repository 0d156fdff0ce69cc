"""One operation back along a stream: what it does to the value that it carries.

Works on a condensed graph, where each norm is one `normalize`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from normscope.graph import Graph, Node, Origin
from normscope.operations import (
    CASTS,
    GUARDS,
    INTEGER_DTYPES,
    NORMALIZE,
    REARRANGEMENTS,
    RESHAPES,
)


class StepKind(StrEnum):
    """What a step does to the value."""

    SAME = "same"
    """Casts, views, rearrangements, dropout, masks, clamps, an added constant."""
    SCALE = "scale"
    """A product with a number or with a parameter."""
    GATE = "gate"
    """A product with another activation."""
    NORM = "norm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step back: from the result of an operation to the operand that it carries."""

    kind: StepKind
    node: int
    """The operation."""
    value: int
    """The operand."""
    factor: str = ""
    """The scale as it reads in a formula: `0.5`, `γ` for a parameter, `g` for a gate."""


def steps_back(graph: Graph, index: int) -> Iterator[Step]:
    """Yield the steps from a value to the values that it carries on; none at a real computation."""
    node = graph.nodes[index]
    if node.origin is not Origin.OPERATION or not node.operands:
        return
    operation = node.operation
    if operation == NORMALIZE:
        yield Step(kind=StepKind.NORM, node=index, value=node.operands[0])
    elif operation in CASTS or operation in RESHAPES or operation == "getitem":
        yield _same(node, node.operands[0])
    elif operation in GUARDS or operation in REARRANGEMENTS:
        for operand in _carried(graph, node):
            yield _same(node, operand)
    elif operation in {"mul", "div"}:
        yield from _scaled(graph, node)
    elif operation in {"add", "sub"}:
        yield from _shifted(graph, node)
    elif operation == "neg":
        yield Step(kind=StepKind.SCALE, node=index, value=node.operands[0], factor="-1")


def _same(node: Node, operand: int) -> Step:
    return Step(kind=StepKind.SAME, node=node.index, value=operand)


def _carried(graph: Graph, node: Node) -> list[int]:
    """Return the operands whose elements are in the result: no masks, no indices."""
    found = [
        operand
        for operand in dict.fromkeys(node.operands)
        if is_activation(graph, operand) and graph.nodes[operand].dtype not in INTEGER_DTYPES
    ]
    return sorted(found, reverse=True)


def is_activation(graph: Graph, index: int) -> bool:
    """Tell whether a value is computed by the model, and not only stored or a mask.

    A mask, a position id or a rotary table depends on no weight and no product; a parameter or
    what is made of parameters alone depends on no input. A learned query counts once a product or
    a norm has changed it.
    """
    node = graph.nodes[index]
    if graph.computes[index]:
        return node.origin is Origin.OPERATION
    if not graph.depends_on_weight[index]:
        return node.origin is Origin.INPUT and not _is_integer(graph, index)
    return node.origin is Origin.OPERATION and graph.depends_on_input[index]


def _is_integer(graph: Graph, index: int) -> bool:
    return graph.nodes[index].dtype in INTEGER_DTYPES


def _scaled(graph: Graph, node: Node) -> Iterator[Step]:
    if len(node.operands) == 1:
        number = node.argument("other")
        # Without a number it is x·x, and a number divided by x carries nothing on either.
        if isinstance(number, int | float) and node.slots[:1] == ("self",):
            shown = _number(number, inverse=node.operation == "div")
            yield Step(kind=StepKind.SCALE, node=node.index, value=node.operands[0], factor=shown)
        return
    first, second = node.operands
    if is_activation(graph, first) and is_activation(graph, second):
        if first != second and node.operation == "mul":
            yield Step(kind=StepKind.GATE, node=node.index, value=first, factor="g")
            yield Step(kind=StepKind.GATE, node=node.index, value=second, factor="g")
        return
    value, other = (first, second) if is_activation(graph, first) else (second, first)
    if not is_activation(graph, value) or (node.operation == "div" and value == second):
        return
    if graph.depends_on_weight[other]:
        yield Step(kind=StepKind.SCALE, node=node.index, value=value, factor="γ")
    else:
        yield _same(node, value)


def _shifted(graph: Graph, node: Node) -> Iterator[Step]:
    """A stored value added (a bias, a position embedding) leaves the stream what it is."""
    if len(node.operands) == 1:
        if isinstance(node.argument("other"), int | float):
            yield _same(node, node.operands[0])
        return
    first, second = node.operands[:2]
    if is_activation(graph, first) and not is_activation(graph, second):
        yield _same(node, first)
    elif (
        node.operation == "add" and is_activation(graph, second) and not is_activation(graph, first)
    ):
        yield _same(node, second)


def _number(value: object, *, inverse: bool) -> str:
    if not isinstance(value, int | float) or value == 0:
        return "s"
    return f"{1 / value if inverse else value:g}"
