"""Norms of one graph -> what reads each, and whether its gain can be folded into that."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from normscope.graph import Graph, Node, Origin
from normscope.norms import Gain, Norm, NormKind
from normscope.operations import CONVOLUTIONS, MATRIX_PRODUCTS
from normscope.placement.vocabulary import Role
from normscope.residuals.steps import StepKind, is_activation, steps_back

_READER_VALUES = 64
_STOPS = frozenset({"add", "sub", "cat", "stack", "hstack", "vstack", "clamp", "clamp_min"}) | {
    "clamp_max", "hardtanh", "nan_to_num"
}  # fmt: skip
"""Steps that keep the stream what it is, but not a product with a gain: w·x + p, min(w·x, c)."""
_CHOOSING = frozenset({"index", "index_select", "gather"})
"""Take rows: of the tokens for an expert, or of the weights of the chosen experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What reads a norm, and why its gain cannot be folded into that, or None."""

    paths: tuple[str, ...]
    """Modules of the readers, in order of execution."""
    reason: str | None


def foldings(graph: Graph, norms: Sequence[Norm], roles: Mapping[int, Role]) -> dict[int, Folding]:
    """Return for each norm, by its output, whether its gain can be folded into all its readers.

    w·x read by products alone is the same as x read by products with w in their weights. It takes
    every reader to be such a product along the norm's own axis, no other use of their weights, and
    every other call of the gain to be foldable as well.
    """
    readers = {norm.output: _readers(graph, norm.output) for norm in norms}
    uses = _uses_of_weights(graph, norms, readers)
    found = {
        norm.output: Folding(
            paths=_paths(graph, readers[norm.output]),
            reason=_unfoldable(graph, norm, roles[norm.output], readers[norm.output], uses),
        )
        for norm in norms
    }
    return _agreed_between_calls(norms, found)


def _agreed_between_calls(
    norms: Sequence[Norm], found: Mapping[int, Folding]
) -> dict[int, Folding]:
    """A gain that serves several calls is folded for all of them or for none."""
    stuck = {norm.weight for norm in norms if found[norm.output].reason is not None}
    return {
        norm.output: replace(found[norm.output], reason="another call of it cannot be folded")
        if found[norm.output].reason is None and norm.weight in stuck
        else found[norm.output]
        for norm in norms
    }


def _readers(graph: Graph, value: int) -> list[Node]:
    """Return the operations that read a value, behind its views, casts, masks and dropout."""
    pending, found = [value], dict[int, Node]()
    for current in pending:
        for index in graph.consumers[current]:
            reader = graph.nodes[index]
            kept = (
                len(pending) < _READER_VALUES
                and reader.operation not in _STOPS
                and any(
                    step.value == current and step.kind is StepKind.SAME
                    for step in steps_back(graph, index)
                )
            )
            if kept:
                pending.append(index)
            else:
                found.setdefault(index, reader)
    return sorted(found.values(), key=lambda node: node.index)


def _paths(graph: Graph, readers: Iterable[Node]) -> tuple[str, ...]:
    """Return the modules of the readers; a product belongs to the module of its weight."""
    return tuple(dict.fromkeys(_owner(graph, node) for node in readers))


def _owner(graph: Graph, node: Node) -> str:
    weight = _stored_weight(graph, node)
    return node.module if weight is None else weight.name.rpartition(".")[0]


def _stored_weight(graph: Graph, node: Node) -> Node | None:
    """Return the parameter that a product or convolution reads."""
    found = (_parameter_behind(graph, operand) for operand in node.operands)
    return next((parameter for parameter in found if parameter is not None), None)


def _parameter_behind(graph: Graph, index: int) -> Node | None:
    """Return the parameter that a value is, behind its views and the choice of its rows."""
    node = graph.nodes[index]
    while node.origin is Origin.OPERATION and node.operands:
        if node.operation not in _CHOOSING and len(node.operands) > 1:
            return None
        node = graph.nodes[node.operands[0]]
    return node if node.origin is Origin.PARAMETER else None


def _is_linear(graph: Graph, node: Node) -> bool:
    product = node.operation in MATRIX_PRODUCTS or node.operation in CONVOLUTIONS
    return product and _stored_weight(graph, node) is not None


def _uses_of_weights(
    graph: Graph, norms: Sequence[Norm], readers: Mapping[int, Sequence[Node]]
) -> dict[int, frozenset[str | None]]:
    """Return for each stored weight the gains behind its uses; None for a use without a gain."""
    gains: dict[int, set[str | None]] = defaultdict(set)
    for norm in norms:
        for node in readers[norm.output]:
            gains[node.index].add(norm.weight)
    uses: dict[int, set[str | None]] = defaultdict(set)
    for parameter in graph.nodes:
        if parameter.origin is not Origin.PARAMETER:
            continue
        for index in _products_of(graph, parameter.index):
            uses[parameter.index] |= gains.get(index, {None})
    return {parameter: frozenset(found) for parameter, found in uses.items()}


def _products_of(graph: Graph, parameter: int) -> list[int]:
    """Return what reads a parameter, behind its own views and casts."""
    pending, found = [parameter], list[int]()
    for value in pending:
        for index in graph.consumers[value]:
            reader = graph.nodes[index]
            chosen = reader.operation in _CHOOSING and reader.operands[0] == value
            (pending if chosen or len(reader.operands) == 1 else found).append(index)
    return found


def _along_its_axis(graph: Graph, norm: Norm, node: Node) -> bool:
    """Tell whether a product sums over the axis that the gain runs along, and not over tokens."""
    weight = _stored_weight(graph, node)
    count = math.prod(norm.shape)
    flowing = [item for item in node.operands if _flows(graph, item)]
    if weight is None or len(flowing) != 1 or count == 0:
        return True
    shape = graph.nodes[flowing[0]].shape
    if node.operation in CONVOLUTIONS:
        summed = shape[1] if len(shape) > 2 else shape[0]
    else:
        summed = shape[-1] if flowing[0] != node.operands[-1] else shape[-2]
    return summed % count == 0


def _flows(graph: Graph, index: int) -> bool:
    return is_activation(graph, index) and _parameter_behind(graph, index) is None


def _unfoldable(
    graph: Graph,
    norm: Norm,
    role: Role,
    readers: Sequence[Node],
    uses: Mapping[int, frozenset[str | None]],
) -> str | None:
    """Return why the gain cannot be folded into what reads the norm, or None."""
    linear = all(_is_linear(graph, node) for node in readers)
    weights = [weight for node in readers if (weight := _stored_weight(graph, node)) is not None]
    checks: Sequence[tuple[bool, str]] = (
        (norm.gain is Gain.NONE, "no gain"),
        (role is Role.TRUNK, "trunk"),
        (role is Role.BRANCH_OUTPUT, "branch output"),
        (norm.output in graph.outputs or not readers, "returned by the model"),
        (
            role in {Role.EMBEDDING, Role.STACK_INPUT, Role.BETWEEN_STACKS} and not linear,
            "the stream carries it",
        ),
        (not linear, "a reader is not linear"),
        (
            not all(_along_its_axis(graph, norm, node) for node in readers),
            "a reader sums over another axis",
        ),
        (
            any(uses.get(weight.index, frozenset()) - {norm.weight} for weight in weights),
            "a reader's weight has other uses",
        ),
        (norm.bias, "has a bias"),
        (norm.kind is NormKind.LAYER, "needs centring"),
    )
    return next((reason for holds, reason in checks if holds), None)
