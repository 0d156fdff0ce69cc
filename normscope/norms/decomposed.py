"""Graph -> the norms that are written out as arithmetic.

A norm is a value multiplied by r or divided by s, where r or s comes from a reduction of that same
value: followed forward from each reduction through casts, + eps, clamps, roots and reciprocals to
the product that uses it, and backward through squares and a subtracted mean to the value.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from normscope.graph import Graph, Node
from normscope.norms.norm import EpsPosition
from normscope.norms.parameters import stored_factor
from normscope.norms.quotient import Quotient, Scale, Statistic
from normscope.operations import CASTS, RESHAPES

SQUARED_REDUCTIONS = frozenset({"mean", "sum"})
"""Give a squared scale when taken of squares."""
VARIANCES = frozenset({"var", "var_mean"})
DEVIATIONS = frozenset({"std", "std_mean", "linalg_vector_norm", "norm"})

_KEEPING = CASTS | RESHAPES
_CHAIN = 16
"""Operations between a reduction and the product that uses it; real ones need about five."""


def find_quotients(graph: Graph) -> Iterator[Quotient]:
    """Yield every value that is divided by a scale taken from itself, in order of execution."""
    for node in graph.nodes:
        for statistic in _statistics(graph, node):
            quotient = _used_by(graph, statistic)
            if quotient is not None:
                yield quotient


# From a reduction back to the value.


def _statistics(graph: Graph, node: Node) -> Iterator[Statistic]:
    if not node.operands or node.output:
        return
    operand = node.operands[0]
    if node.operation in SQUARED_REDUCTIONS:
        squared = _square_root_of(graph, operand)
        if squared is None:
            return
        base, inner = squared
        yield _statistic(graph, node, base, inner, node.operation)
    elif node.operation in VARIANCES:
        yield replace(_statistic(graph, node, operand, frozenset(), "var"), centred=True)
    elif node.operation in DEVIATIONS and _is_euclidean(node):
        kind = "norm" if "norm" in node.operation else "var"
        found = _statistic(graph, node, operand, frozenset(), kind)
        yield replace(found, centred=found.centred or kind == "var")


def _is_euclidean(node: Node) -> bool:
    order = node.argument("ord", node.argument("p", 2))
    return order is None or order == 2


def _statistic(graph: Graph, node: Node, base: int, inner: frozenset[int], kind: str) -> Statistic:
    values, passed = _unwrapped(graph, base)
    centre = _uncentred(graph, values[-1])
    centred = centre is not None
    if centre is not None:
        more, passed_more = _unwrapped(graph, centre[0])
        values, passed = more, passed | passed_more | centre[1] | set(values)
    return Statistic(
        node=node.index,
        values=tuple(values),
        interior=inner | passed | {node.index},
        centred=centred,
        kind=kind,
    )


def _square_root_of(graph: Graph, index: int) -> tuple[int, frozenset[int]] | None:
    """Return the value whose square `index` is, and the nodes in between."""
    passed: set[int] = set()
    node = graph.nodes[index]
    while node.operation in _KEEPING and node.operands:
        passed.add(node.index)
        node = graph.nodes[node.operands[0]]
    passed.add(node.index)
    square = (
        node.operation == "square"
        or (node.operation == "pow" and node.argument("exponent") in {2})
        or (node.operation == "mul" and len(set(node.operands)) == 1 and len(node.operands) == 2)
    )
    if not square:
        return None
    inner = graph.nodes[node.operands[0]]
    if inner.operation == "abs":
        passed.add(inner.index)
        inner = graph.nodes[inner.operands[0]]
    return inner.index, frozenset(passed)


def _unwrapped(graph: Graph, index: int) -> tuple[list[int], frozenset[int]]:
    """Return a value and what it was cast or reshaped from, nearest first."""
    values = [index]
    node = graph.nodes[index]
    while node.operation in _KEEPING and node.operands and len(values) < _CHAIN:
        values.append(node.operands[0])
        node = graph.nodes[node.operands[0]]
    return values, frozenset(values[:-1])


def _uncentred(graph: Graph, index: int) -> tuple[int, frozenset[int]] | None:
    """Return x where `index` is x - mean(x), and the nodes in between."""
    node = graph.nodes[index]
    if node.operation == "sub" and len(node.operands) == 2 and node.argument("alpha", 1) == 1:
        value, mean = node.operands
    elif node.operation == "add" and len(node.operands) == 2:
        value, mean = node.operands
        negated = graph.nodes[mean]
        if negated.operation != "neg":
            return None
        mean = negated.operands[0]
    else:
        return None
    reduced = _mean_source(graph, mean)
    if reduced is None:
        return None
    source, passed = reduced
    own, _ = _unwrapped(graph, value)
    theirs, their_passed = _unwrapped(graph, source)
    common = next((candidate for candidate in own if candidate in set(theirs)), None)
    if common is None:
        return None
    return value, passed | {index} | (their_passed - set(own))


def _mean_source(graph: Graph, index: int) -> tuple[int, frozenset[int]] | None:
    """Return the value that `index` is the mean of: mean(x), or sum(x) over a count."""
    passed: set[int] = set()
    node = graph.nodes[index]
    while node.operands and (
        node.operation in _KEEPING
        or node.operation == "getitem"
        or (node.operation in {"div", "mul"} and len(node.operands) == 1)
    ):
        passed.add(node.index)
        node = graph.nodes[node.operands[0]]
    if node.operation not in {"mean", "sum", "var_mean", "std_mean"}:
        return None
    return node.operands[0], frozenset(passed | {node.index})


# From a reduction forward to the product that uses it.


def _used_by(graph: Graph, statistic: Statistic) -> Quotient | None:
    power = 2.0 if statistic.kind in {"mean", "sum"} else 1.0
    node = graph.nodes[statistic.node]
    if node.operation in VARIANCES:
        power = 2.0
    pending = [Scale(node=statistic.node, power=power)]
    for scale in pending:
        if len(pending) > _CHAIN * 2:
            return None
        for index in graph.consumers[scale.node]:
            reader = graph.nodes[index]
            quotient = _quotient(graph, statistic, scale, reader)
            if quotient is not None:
                return quotient
            further = _further(graph, scale, reader)
            if further is not None:
                pending.append(further)
    return None


def _further(graph: Graph, scale: Scale, reader: Node) -> Scale | None:
    """Follow one operation on a scale that keeps it a scale."""
    moved = replace(scale, node=reader.index, interior=scale.interior | {reader.index})
    operation = reader.operation
    if operation in _KEEPING:
        return moved
    if operation in {"sqrt", "rsqrt", "reciprocal", "pow", "square"}:
        exponent = _exponent(reader)
        return replace(moved, power=scale.power * exponent, factor=scale.factor**exponent)
    if operation in {"add", "clamp", "clamp_min", "maximum"}:
        return _with_eps(graph, moved, scale, reader)
    if operation in {"mul", "div"}:
        divides = operation == "div" and reader.operands[0] != scale.node
        power = -scale.power if divides else scale.power
        if _other_is_number(graph, scale, reader):
            factor = 1 / scale.factor if divides else scale.factor * _number(reader)
            return replace(moved, power=power, factor=factor)
        gain = _stored_other(graph, scale.node, reader)
        if gain is not None and scale.gain is None and (operation == "mul" or divides):
            factor = 1 / scale.factor if divides else scale.factor
            return replace(moved, power=power, factor=factor, gain=gain)
    return None


def _number(reader: Node) -> float:
    """Return the positive number that a product or quotient brings in, 1 where it is not known."""
    number = reader.argument("other")
    if not isinstance(number, int | float) or number <= 0:
        return 1.0
    return float(number) if reader.operation == "mul" else 1 / number


def _stored_other(graph: Graph, value: int, reader: Node) -> int | None:
    """Return the stored factor beside a value in a product, if the other operand is one."""
    others = [operand for operand in reader.operands if operand != value]
    stored = len(others) == 1 and stored_factor(graph, others[0]) is not None
    return others[0] if stored else None


def _exponent(reader: Node) -> float:
    exponents = {"sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1.0, "square": 2.0}
    if reader.operation in exponents:
        return exponents[reader.operation]
    exponent = reader.argument("exponent")
    return float(exponent) if isinstance(exponent, int | float) else 0.0


def _other_is_number(graph: Graph, scale: Scale, reader: Node) -> bool:
    others = [operand for operand in reader.operands if operand != scale.node]
    return all(
        graph.nodes[other].shape in {(), (1,)}
        and not graph.depends_on_input[other]
        and not graph.depends_on_weight[other]
        for other in others
    )


def _with_eps(graph: Graph, moved: Scale, scale: Scale, reader: Node) -> Scale | None:
    """Add eps: inside the root while the scale is squared, outside it or as a clamp later."""
    if not _other_is_number(graph, scale, reader) or _only_clips(scale, reader):
        return None
    value = reader.argument("other", reader.argument("min"))
    eps = float(value) if isinstance(value, int | float) else None
    if reader.operation != "add":
        position = EpsPosition.CLAMP
    else:
        position = EpsPosition.INSIDE if scale.power == 2.0 else EpsPosition.OUTSIDE
    if eps is not None and scale.power > 0:  # as it would stand beside the statistic itself
        squared = position is EpsPosition.CLAMP and scale.power == 2.0 and eps > 0
        eps = math.sqrt(eps / scale.factor) if squared else eps / scale.factor
    return replace(moved, eps=eps, eps_position=position)


def _only_clips(scale: Scale, reader: Node) -> bool:
    """Tell x·min(t/|x|, 1), which leaves a short vector as it is, from a division by its scale."""
    most = reader.argument("max")
    return scale.power < 0 and isinstance(most, int | float) and most <= 1


def _quotient(graph: Graph, statistic: Statistic, scale: Scale, reader: Node) -> Quotient | None:
    """Return the norm if `reader` divides the statistic's own value by this scale."""
    if len(reader.operands) != 2 or scale.node not in reader.operands:
        return None
    first, second = reader.operands
    divides = reader.operation == "div" and second == scale.node and scale.power == 1.0
    multiplies = reader.operation == "mul" and scale.power == -1.0
    if not (divides or multiplies):
        return None
    value = first if second == scale.node else second
    gain, before = None, frozenset[int]()
    if not set(_unwrapped(graph, value)[0]) & set(statistic.values):
        gain, value, before = _without_gain(graph, value)
    values, passed = _unwrapped(graph, value)
    centre = _uncentred(graph, values[-1])
    centred = centre is not None
    if centre is not None:
        passed = passed | centre[1] | set(values)
        values, more = _unwrapped(graph, centre[0])
        passed = passed | more
    own = set(statistic.values)
    common = next((candidate for candidate in values if candidate in own), None)
    if common is None or centred != statistic.centred:
        return None
    interior = statistic.interior | scale.interior | passed | before | {reader.index}
    return Quotient(
        statistic=statistic,
        scale=scale,
        input=common,
        output=reader.index,
        centred=centred,
        interior=frozenset(node for node in interior if node > common),
        factor=1 / scale.factor if divides else scale.factor,
        gain=scale.gain if gain is None else gain,
    )


def _without_gain(graph: Graph, value: int) -> tuple[int | None, int, frozenset[int]]:
    """Split w·x into its stored factor, x and the nodes in between; elsewhere give x back."""
    chain, passed = _unwrapped(graph, value)
    node = graph.nodes[chain[-1]]
    if node.operation == "mul" and len(node.operands) == 2:
        for operand in node.operands:
            gain = _stored_other(graph, operand, node)
            if gain is not None and graph.depends_on_input[operand]:
                return gain, operand, passed | {node.index}
    return None, value, frozenset()
