"""Quotient -> Norm: the gain, the bias and the axes of a written-out norm."""

import math
from dataclasses import replace

from normscope.graph import Argument, Graph, Node
from normscope.norms.affine import Affine, follow_affine
from normscope.norms.decomposed import SQUARED_REDUCTIONS
from normscope.norms.norm import EpsPosition, Gain, Norm, NormKind
from normscope.norms.parameters import stored_factor
from normscope.norms.quotient import Quotient, Statistic
from normscope.operations import CASTS


def norm_of_quotient(graph: Graph, quotient: Quotient) -> Norm:
    """Read the remaining facts of a written-out norm."""
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
        eps=_eps(quotient, kind, math.prod(source[axis] for axis in axes)),
        eps_position=quotient.scale.eps_position,
        factor=_factor(quotient, kind, math.prod(source[axis] for axis in axes), affine),
        gain=gain.form if gain is not None else Gain.NONE,
        bias=affine.bias is not None,
        weight=gain.parameter if gain is not None else None,
        bias_name=affine.bias.parameter if affine.bias is not None else None,
        statistics_dtype=graph.nodes[reduced.operands[0]].dtype,
        squares_dtype=_squares_dtype(graph, quotient.statistic),
        gain_dtype=affine.gain_dtype,
    )


def _squares_dtype(graph: Graph, statistic: Statistic) -> str | None:
    """Return the dtype of the squares where they are cast before they are summed."""
    if statistic.kind not in SQUARED_REDUCTIONS:
        return None
    reduced = graph.nodes[statistic.node]
    squares = graph.nodes[reduced.operands[0]]
    while squares.operation in CASTS and squares.operands:
        squares = graph.nodes[squares.operands[0]]
    return None if squares.dtype == graph.nodes[reduced.operands[0]].dtype else squares.dtype


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


def _eps(quotient: Quotient, kind: NormKind, count: int) -> float | None:
    """Return eps as it stands beside the mean of squares, or its root, where a sum was made one."""
    eps = quotient.scale.eps
    if eps is None or not _by_sum(quotient, kind):
        return eps
    inside = quotient.scale.eps_position is EpsPosition.INSIDE
    # Rounded, so that 1e-06 multiplied and divided by a count is 1e-06 again.
    return float(f"{eps / (count if inside else math.sqrt(count)):.9g}")


def _factor(quotient: Quotient, kind: NormKind, count: int, affine: Affine) -> float:
    """Return the number that is left when a sum of squares was made a mean."""
    return affine.factor / math.sqrt(count) if _by_sum(quotient, kind) else affine.factor


def _by_sum(quotient: Quotient, kind: NormKind) -> bool:
    """Tell whether a norm whose kind is defined by a mean of squares was written with their sum."""
    return kind is not NormKind.L2 and quotient.statistic.kind in {"sum", "norm"}


def _groups(
    graph: Graph, quotient: Quotient, axes: tuple[int, ...], source: tuple[int, ...]
) -> int | None:
    """Count the groups where the features were split before the statistics and joined after."""
    outer = graph.nodes[quotient.input].shape
    if axes != (-1,) or not outer or len(outer) >= len(source) or outer[-1] == source[-1]:
        return None
    return outer[-1] // source[-1] if outer[-1] % source[-1] == 0 else None


def _affine(graph: Graph, quotient: Quotient) -> Affine:
    """Read the gain that a quotient may have in it, and what follows."""
    found = Affine(output=quotient.output, factor=quotient.factor)
    if quotient.gain is not None:
        found = replace(
            found,
            gain=stored_factor(graph, quotient.gain),
            gain_dtype=graph.nodes[quotient.output].dtype,
        )
    return follow_affine(graph, found)
