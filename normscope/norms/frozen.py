"""Graph -> the norms by stored statistics that are written out: x·w/sqrt(var + eps) + (b - mean·…).

A batch norm with frozen statistics is one product and one sum with stored values. It is told from
any other affine step by the root over a stored buffer in its factor.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from normscope.graph import Graph, Node, Origin
from normscope.norms.norm import EpsPosition, Gain, Norm, NormKind

_STEPS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class _Factor:
    """A stored factor with a root of a buffer in it."""

    eps: float | None
    parameter: str | None


def find_frozen(graph: Graph) -> Iterator[Norm]:
    """Yield the products with a stored factor that divides by the root of a stored variance."""
    for node in graph.nodes:
        if node.operation != "mul" or len(node.operands) != 2 or len(node.shape) < 2:
            continue
        first, second = node.operands
        for value, factor in ((first, second), (second, first)):
            if graph.depends_on_input[value] and not graph.depends_on_input[factor]:
                found = _stored_root(graph, factor)
                if found is not None:
                    yield _frozen_norm(graph, node, value, factor, found)


def _frozen_norm(graph: Graph, node: Node, value: int, factor: int, found: _Factor) -> Norm:
    shift = _shift(graph, node)
    output = shift[0] if shift is not None else node.index
    rank = len(node.shape)
    channel = _channel_axis(graph.nodes[factor].shape, rank)
    return Norm(
        kind=NormKind.BATCH,
        input=value,
        normalized=None,
        output=output,
        interior=frozenset({node.index, output}),
        axes=tuple(axis for axis in range(rank) if axis != channel),
        shape=(node.shape[channel],),
        eps=found.eps,
        eps_position=EpsPosition.INSIDE if found.eps else EpsPosition.NONE,
        gain=Gain.W if found.parameter is not None else Gain.NONE,
        bias=shift is not None,
        weight=found.parameter,
        bias_name=shift[1] if shift is not None else None,
        statistics_dtype=node.dtype,
        gain_dtype=node.dtype if found.parameter is not None else None,
        frozen_statistics=True,
    )


def _channel_axis(shape: tuple[int, ...], rank: int) -> int:
    padded = (1,) * (rank - len(shape)) + shape
    return next((axis for axis, size in enumerate(padded) if size > 1), 1)


def _shift(graph: Graph, node: Node) -> tuple[int, str | None] | None:
    """Return the sum with a stored value that follows at once, and that value's own name."""
    readers = graph.consumers[node.index]
    if len(readers) != 1:
        return None
    reader = graph.nodes[readers[0]]
    other = next((item for item in reader.operands if item != node.index), None)
    if reader.operation != "add" or other is None or graph.depends_on_input[other]:
        return None
    names = [graph.nodes[index].name for index in _stored_behind(graph, other)]
    plain = [name for name in names if name]
    return reader.index, plain[0] if plain else None


def _stored_root(graph: Graph, factor: int) -> _Factor | None:
    """Read eps and the gain's name off a stored factor, if a root of a buffer is in it."""
    eps: float | None = None
    rooted = False
    names: list[str] = []
    for index in _stored_behind(graph, factor):
        node = graph.nodes[index]
        if node.operation in {"rsqrt", "sqrt"} or (
            node.operation == "pow" and node.argument("exponent") in {0.5, -0.5}
        ):
            behind = [graph.nodes[item] for item in _stored_behind(graph, node.operands[0])]
            rooted = any(item.origin is Origin.BUFFER and item.shape != () for item in behind)
            added = [item.argument("other") for item in behind if item.operation == "add"]
            eps = next((float(item) for item in added if isinstance(item, int | float)), None)
            names += [item.name for item in behind if item.name]
    if not rooted:
        return None
    stored = [graph.nodes[index].name for index in _stored_behind(graph, factor)]
    own = [name for name in stored if name and name not in names]
    return _Factor(eps=eps, parameter=own[0] if own else None)


def _stored_behind(graph: Graph, index: int) -> list[int]:
    """Return a stored value and the few values that it is computed from."""
    pending = [index]
    for value in pending:
        if len(pending) > _STEPS:
            break
        pending.extend(operand for operand in graph.nodes[value].operands if operand not in pending)
    return pending
