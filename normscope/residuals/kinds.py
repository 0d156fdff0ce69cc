"""The nodes of a branch -> what the branch computes."""

from collections.abc import Container, Iterable
from enum import StrEnum

from normscope.graph import Graph, Node
from normscope.operations import (
    CONVOLUTIONS,
    FOURIER,
    FUSED_ATTENTION,
    INTEGER_DTYPES,
    MATRIX_PRODUCTS,
    NORMALIZE,
    POOLING,
    RECURRENT,
    SAMPLING,
    SOFTMAX,
    keeps_elements,
)
from normscope.residuals.recurrence import recurs, scans
from normscope.residuals.steps import is_activation, steps_back

_ROUTING = frozenset({"topk", "_grouped_mm", "grouped_mm"})
_CHOOSING = frozenset({"gather", "index", "index_select", "index_add", "index_put", "index_copy"})
_PROBABILITY_STEPS = 12


class BranchKind(StrEnum):
    """What a branch computes."""

    ATTENTION = "attention"
    CROSS_ATTENTION = "cross-attention"
    MLP = "mlp"
    MOE = "moe"
    CONV = "conv"
    SSM = "ssm"
    RNN = "rnn"
    FOURIER = "fourier"
    POOLING = "pooling"
    OTHER = "other"


def branch_kind(
    graph: Graph,
    stream: int,
    nodes: frozenset[int],
    entries: Iterable[int],
    sums: frozenset[int] = frozenset(),
) -> BranchKind:
    """Name what the nodes between a stream value and a branch's end compute.

    `sums` are the residual sums of the graph; attention over values that only come from the sum of
    another stream is cross-attention.
    """
    ordered = [graph.nodes[index] for index in sorted(own_nodes(graph, nodes, sums))]
    operations = {node.operation for node in ordered}
    attends = [node for node in ordered if _attends(graph, node)]
    if attends:
        crosses = all(_is_crossed(graph, node, stream, nodes, sums) for node in attends)
        return BranchKind.CROSS_ATTENTION if crosses else BranchKind.ATTENTION
    for known, kind in (
        (FOURIER, BranchKind.FOURIER),
        (RECURRENT, BranchKind.RNN),
    ):
        if operations & known:
            return kind
    if recurs(graph, ordered):
        return BranchKind.RNN
    if scans(graph, ordered):
        return BranchKind.SSM if _chooses_its_steps(graph, ordered) else BranchKind.RNN
    routed = any(_is_routed(graph, node) or _uses_chosen_weights(graph, node) for node in ordered)
    if routed or operations & _ROUTING:
        return BranchKind.MOE
    return _channel_kind(graph, ordered, operations, entries)


def _chooses_its_steps(graph: Graph, ordered: list[Node]) -> bool:
    """Tell the scan of a selective state space, whose step sizes are a softplus of the data."""
    return any(
        node.operation == "softplus" and is_activation(graph, node.operands[0]) for node in ordered
    )


def own_nodes(graph: Graph, nodes: frozenset[int], sums: Container[int]) -> frozenset[int]:
    """Leave out what other residual adds on the way computed: an inner stream, or another one."""
    end = max(nodes, default=-1)
    pending, seen = [end] if nodes else [], {end}
    for current in pending:
        for operand in graph.nodes[current].operands:
            if operand in nodes and operand not in sums and operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return frozenset(pending)


def _channel_kind(
    graph: Graph, ordered: list[Node], operations: set[str], entries: Iterable[int]
) -> BranchKind:
    products = [node for node in ordered if node.operation in MATRIX_PRODUCTS]
    scans = "softplus" in operations and "exp" in operations
    if scans and not any(_reads_normalized(graph, node) for node in products):
        return BranchKind.SSM
    convolutions = [node for node in ordered if node.operation in CONVOLUTIONS]
    spatial = any(_is_spatial(graph, node) for node in convolutions)
    entry_operations = {graph.nodes[index].operation for index in entries}
    # Along a sequence a convolution mixes tokens; on a grid, between two products, it is the MLP's.
    along = any(len(node.shape) == 3 and _is_spatial(graph, node) for node in convolutions)
    if operations & SOFTMAX and products:
        # Weights over the tokens without a product (a separable attention).
        return BranchKind.ATTENTION
    if spatial and (not products or entry_operations <= CONVOLUTIONS):
        return BranchKind.CONV
    if any(_multiplies_activations(graph, node) for node in products):
        return BranchKind.ATTENTION
    if along:
        return BranchKind.CONV
    if len(convolutions) == 1 and not products:
        return BranchKind.CONV
    if products or convolutions:
        return BranchKind.MLP
    return BranchKind.POOLING if operations & POOLING else BranchKind.OTHER


def _attends(graph: Graph, node: Node) -> bool:
    """A fused attention, a product with probabilities, or values sampled at learned places."""
    if node.operation in FUSED_ATTENTION or node.operation in SAMPLING:
        return True
    return node.operation in MATRIX_PRODUCTS and any(
        _is_probability(graph, operand) for operand in node.operands
    )


def _is_probability(graph: Graph, index: int) -> bool:
    return _is_behind(graph, index, SOFTMAX)


def _is_behind(graph: Graph, index: int, operations: frozenset[str]) -> bool:
    """Tell whether a value comes from one of the operations, behind views, masks and scales."""
    pending = [index]
    for value in pending:
        if graph.nodes[value].operation in operations:
            return True
        if len(pending) < _PROBABILITY_STEPS:
            pending.extend(step.value for step in steps_back(graph, value))
    return False


def _is_crossed(
    graph: Graph, node: Node, stream: int, nodes: frozenset[int], sums: frozenset[int]
) -> bool:
    """Tell whether attention reads values that come from elsewhere than the stream it asks for.

    In a reversible pair queries and values all come from the other half: that is no crossing.
    """
    if node.operation in FUSED_ATTENTION:
        value = node.operand("value") or node.operand("v") or node.operands[-1]
    elif node.operation in SAMPLING:
        value = node.operands[0]
    else:
        value = next(
            (item for item in node.operands if not _is_probability(graph, item)), node.operands[-1]
        )
    reading = _comes_from(graph, node.index, stream, nodes, sums)
    return reading and not _comes_from(graph, value, stream, nodes, sums)


def _comes_from(
    graph: Graph, value: int, stream: int, nodes: frozenset[int], sums: frozenset[int]
) -> bool:
    """Tell whether a value is computed from the stream within the branch."""
    pending, seen = [value], {value}
    for current in pending:
        if current == stream:
            return True
        if current in sums or current not in nodes:
            continue
        for operand in graph.nodes[current].operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return False


def _reads_normalized(graph: Graph, node: Node) -> bool:
    """Tell a delta rule over normalized queries and keys from the scan of a state space."""
    return _multiplies_activations(graph, node) and any(
        _is_behind(graph, operand, frozenset({NORMALIZE})) for operand in node.operands
    )


def _multiplies_activations(graph: Graph, node: Node) -> bool:
    flowing = [
        operand
        for operand in node.operands[-2:]
        if is_activation(graph, operand) and not _is_looked_up(graph, operand)
    ]
    return len(flowing) == 2


def _is_routed(graph: Graph, node: Node) -> bool:
    """Tell whether rows are chosen by indices that the model computed."""
    return node.operation in _CHOOSING and any(
        graph.nodes[operand].dtype in INTEGER_DTYPES and graph.computes[operand]
        for operand in node.operands
    )


def _uses_chosen_weights(graph: Graph, node: Node) -> bool:
    """Tell whether a product reads weights that the data chose."""
    return node.operation in MATRIX_PRODUCTS and any(
        is_activation(graph, operand) and _is_looked_up(graph, operand) for operand in node.operands
    )


def _is_looked_up(graph: Graph, index: int) -> bool:
    """Tell whether a value is rows of a stored table (the weights of chosen experts)."""
    for _ in range(_PROBABILITY_STEPS):
        node = graph.nodes[index]
        if node.operation in {"index", "index_select", "gather"}:
            return not is_activation(graph, node.operands[0])
        if not keeps_elements(node.operation) or not node.operands:
            return False
        index = node.operands[0]
    return False


def _is_spatial(graph: Graph, node: Node) -> bool:
    weight = node.operand("weight")
    return weight is not None and any(size > 1 for size in graph.nodes[weight].shape[2:])
