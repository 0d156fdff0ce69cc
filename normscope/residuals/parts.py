"""Residual add -> whether its branch reads another part of the stream than it is added to.

Where parallel streams are stacked in one value, a block may compute from the first and add to the
others (the per-layer inputs of Gemma 3n).
"""

from normscope.graph import Graph
from normscope.residuals.branches import Branch

_Part = tuple[int, int, int]
"""An axis, and the elements along it: from the first to before the last."""


def reads_another_part(graph: Graph, branch: Branch) -> bool:
    """Tell whether skip and branch take parts of the stream value that share no element."""
    stream, steps = branch.add.stream, branch.add.steps
    taken = _part(graph, steps[-1].node, stream) if steps else None
    if taken is None:
        return False
    readers = [index for index in graph.consumers[stream] if index in branch.nodes]
    read = [_part(graph, index, stream) for index in readers]
    return bool(read) and all(part is not None and _apart(part, taken) for part in read)


def _apart(first: _Part, second: _Part) -> bool:
    return first[0] == second[0] and (first[2] <= second[1] or second[2] <= first[1])


def _part(graph: Graph, index: int, stream: int) -> _Part | None:
    node = graph.nodes[index]
    if node.operation not in {"slice", "select"} or node.operands != (stream,):
        return None
    shape = graph.nodes[stream].shape
    axis = _number(node.argument("dim"), 0) % len(shape)
    if node.operation == "select":
        start = _number(node.argument("index"), 0) % shape[axis]
        return axis, start, start + 1
    start, end, _ = slice(
        _number(node.argument("start"), 0), _number(node.argument("end"), shape[axis])
    ).indices(shape[axis])
    return axis, start, end


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
