"""A normalized value -> the gain and the bias that are written out behind it."""

import math
from dataclasses import dataclass

from normscope.graph import Graph, Node
from normscope.norms.parameters import StoredFactor, stored_factor
from normscope.operations import CASTS, RESHAPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """What follows a quotient: numbers, the gain and the bias, up to `output`."""

    output: int
    interior: frozenset[int] = frozenset()
    factor: float = 1.0
    gain: StoredFactor | None = None
    gain_dtype: str | None = None
    bias: StoredFactor | None = None


def follow_affine(graph: Graph, found: Affine) -> Affine:
    """Follow the only reader of `found.output` through casts, numbers, the gain and the bias."""
    current = graph.nodes[found.output]
    passed: set[int] = set()
    while True:
        readers = _readers(graph, current.index)
        if len(readers) != 1:
            return found
        reader = graph.nodes[readers[0]]
        passed.add(reader.index)
        step = _affine_step(graph, found, current, reader)
        if step is None:
            return found
        if step is not found:
            found = Affine(
                output=reader.index,
                interior=frozenset(passed),
                factor=step.factor,
                gain=step.gain,
                gain_dtype=step.gain_dtype,
                bias=step.bias,
            )
        current = reader


def _readers(graph: Graph, index: int) -> list[int]:
    """Return what reads a value; further outputs of its operation that nothing reads do not."""
    return [
        reader
        for reader in graph.consumers[index]
        if graph.consumers[reader] or graph.nodes[reader].operation != "getitem"
    ]


def _affine_step(graph: Graph, found: Affine, value: Node, reader: Node) -> Affine | None:
    """Return `found` itself for a cast, a new Affine for a gain, bias or number, else None."""
    if reader.operation in CASTS or reader.operation in RESHAPES:
        return found
    if reader.operation in {"mul", "add"} and len(reader.operands) == 2:
        other = next((item for item in reader.operands if item != value.index), None)
        factor = stored_factor(graph, other) if other is not None else None
        if factor is None or not _matches(factor, value):
            return None
        if reader.operation == "mul" and found.gain is None and found.bias is None:
            return Affine(output=0, factor=found.factor, gain=factor, gain_dtype=reader.dtype)
        if reader.operation == "add" and found.bias is None:
            return Affine(
                output=0,
                factor=found.factor,
                gain=found.gain,
                gain_dtype=found.gain_dtype,
                bias=factor,
            )
        return None
    number = reader.argument("other")
    if (
        reader.operation == "mul"
        and len(reader.operands) == 1
        and isinstance(number, int | float)
        and found.gain is None
    ):
        return Affine(output=0, factor=found.factor * float(number))
    return None


def _matches(factor: StoredFactor, value: Node) -> bool:
    """A gain has as many elements as a feature axis; a lone number is a scale of the branch."""
    count = math.prod(factor.shape)
    return (
        count == 1
        or any(count == size for size in value.shape)
        or factor.shape == value.shape[len(value.shape) - len(factor.shape) :]
    )
