"""How a stored parameter enters an operation: as it is, as 1 + w, or in another way."""

from dataclasses import dataclass

from normscope.graph import Graph, Node, Origin
from normscope.norms.norm import Gain
from normscope.operations import CONVOLUTIONS, MATRIX_PRODUCTS, keeps_elements, mixes

_STEPS = 12
"""A gain is a handful of operations away from its parameter; anything longer is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFactor:
    """A value computed from one stored parameter and numbers."""

    form: Gain
    parameter: str
    shape: tuple[int, ...]


def stored_factor(graph: Graph, index: int) -> StoredFactor | None:
    """Return how the value at `index` is made from one parameter, or None.

    Casts and views count as nothing, one addition of 1 gives `1+w`, and any other arithmetic
    with numbers gives `other`. A value that an activation reaches is no stored factor.
    """
    form = Gain.W
    node = graph.nodes[index]
    for _ in range(_STEPS):
        if node.origin is Origin.PARAMETER:
            return StoredFactor(form=form, parameter=node.name, shape=node.shape)
        if node.origin is not Origin.OPERATION:
            return None
        tensor_operands = [graph.nodes[operand] for operand in node.operands]
        varying = [operand for operand in tensor_operands if not _is_number(operand)]
        if len(varying) != 1:
            return None
        form = _step(form, node)
        node = varying[0]
    return None


def _step(form: Gain, node: Node) -> Gain:
    if keeps_elements(node.operation) or node.operation in {"repeat", "slice"}:
        return form
    adds_one = (
        node.operation == "add" and node.argument("other") == 1 and node.argument("alpha", 1) == 1
    )
    return Gain.ONE_PLUS_W if adds_one and form is Gain.W else Gain.OTHER


def _is_number(node: Node) -> bool:
    return node.origin is Origin.CONSTANT and node.shape == ()


def standardizes_a_weight(graph: Graph, source: int, result: int) -> bool:
    """Tell whether a norm of `source` makes the weight of a convolution or a matrix product.

    A learned query or latent is a parameter too, but it is read as the value that flows.
    """
    if graph.depends_on_input[source] or not graph.depends_on_weight[source]:
        return False
    pending = [result]
    for value in pending:
        for index in graph.consumers[value]:
            reader = graph.nodes[index]
            if _weight_slot(reader) == value:
                return True
            if not mixes(reader.operation) and not graph.depends_on_input[index]:
                pending.append(index)
    return False


def _weight_slot(reader: Node) -> int | None:
    if reader.operation in CONVOLUTIONS or reader.operation == "linear":
        return reader.operand("weight")
    return reader.operand("mat2") if reader.operation in MATRIX_PRODUCTS else None
