"""Quotient -> Norm: the gain, the bias and the axes of a written-out norm."""

import math
from dataclasses import dataclass, replace

from normscope.graph import Argument, Graph, Node
from normscope.norms.norm import Gain, Norm, NormKind
from normscope.norms.parameters import StoredFactor, stored_factor
from normscope.norms.quotient import Quotient
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


def norm_of_quotient(graph: Graph, quotient: Quotient) -> Norm | None:
    """Read the remaining facts of a written-out norm; None where it is no norm of features."""
    reduced = graph.nodes[quotient.statistic.node]
    axes = _reduced_axes(graph, reduced)
    affine = _affine(graph, quotient)
    kind = _kind(graph, quotient, axes, affine)
    source = graph.nodes[reduced.operands[0]].shape
    gain = affine.gain
    return Norm(
        kind=kind,
        input=quotient.input,
        normalized=quotient.output if quotient.gain is None else None,
        output=affine.output,
        interior=quotient.interior | affine.interior,
        axes=axes,
        shape=tuple(source[axis] for axis in axes),
        groups=_groups(graph, quotient, axes, source),
        eps=quotient.scale.eps,
        eps_position=quotient.scale.eps_position,
        gain=gain.form if gain is not None else Gain.NONE,
        bias=affine.bias is not None,
        weight=gain.parameter if gain is not None else None,
        bias_name=affine.bias.parameter if affine.bias is not None else None,
        statistics_dtype=graph.nodes[reduced.operands[0]].dtype,
        gain_dtype=affine.gain_dtype,
    )


def _reduced_axes(graph: Graph, reduced: Node) -> tuple[int, ...]:
    rank = len(graph.nodes[reduced.operands[0]].shape)
    given: Argument = reduced.argument("dim")
    if isinstance(given, int):
        given = (given,)
    if not isinstance(given, tuple) or not given:
        return tuple(range(-rank, 0))
    axes = (int(axis) for axis in given if isinstance(axis, int))
    return tuple(sorted(axis - rank if axis >= 0 else axis for axis in axes))


def _kind(graph: Graph, quotient: Quotient, axes: tuple[int, ...], affine: Affine) -> NormKind:
    source = graph.nodes[graph.nodes[quotient.statistic.node].operands[0]].shape
    rank = len(source)
    if not quotient.centred:
        return NormKind.RMS if _is_mean(quotient, axes, source, affine) else NormKind.L2
    if rank >= 3 and -rank in axes:
        return NormKind.BATCH
    if rank >= 4 and axes == tuple(range(2 - rank, 0)):
        return NormKind.INSTANCE
    return NormKind.LAYER


def _is_mean(
    quotient: Quotient, axes: tuple[int, ...], source: tuple[int, ...], affine: Affine
) -> bool:
    """A sum of squares, times the root of the count, is a mean of squares."""
    if quotient.statistic.kind == "mean":
        return True
    count = math.prod(source[axis] for axis in axes)
    return math.isclose(affine.factor, math.sqrt(count), rel_tol=1e-3) and count > 1


def _groups(
    graph: Graph, quotient: Quotient, axes: tuple[int, ...], source: tuple[int, ...]
) -> int | None:
    """Count the groups where the features were split before the statistics and joined after."""
    outer = graph.nodes[quotient.input].shape
    if axes != (-1,) or not outer or len(outer) >= len(source) or outer[-1] == source[-1]:
        return None
    return outer[-1] // source[-1] if outer[-1] % source[-1] == 0 else None


def _affine(graph: Graph, quotient: Quotient) -> Affine:
    """Follow the only reader of a quotient through casts, the gain and the bias."""
    start = quotient.output
    found = Affine(output=start)
    if quotient.gain is not None:
        found = replace(
            found,
            gain=stored_factor(graph, quotient.gain),
            gain_dtype=graph.nodes[start].dtype,
        )
    current = graph.nodes[start]
    passed: set[int] = set()
    while True:
        readers = graph.consumers[current.index]
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
