"""Graph + norm -> the output as its axes have it, and how its rows lie; knows no torch."""

from dataclasses import dataclass

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import CASTS, RESHAPES


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    """A value of a norm, and which of its axes one row takes up."""

    node: int
    axes: tuple[int, ...]
    groups: int | None


def input_view(norm: Norm) -> RowView:
    """Return the value that goes in."""
    return RowView(node=norm.input, axes=norm.axes, groups=norm.groups)


def output_view(graph: Graph, norm: Norm) -> RowView | None:
    """Return the value after gain and bias, or None where its rows cannot be told.

    A module may turn its axes around for the norm and back again: then it is the value before
    they are turned back that has the norm's axes.
    """
    shape = graph.nodes[norm.input].shape
    for node in (_unturned(graph, norm.output), norm.output):
        found = _fitting(graph.nodes[node].shape, shape, norm)
        if found is not None:
            return RowView(node=node, axes=norm.axes, groups=found or None)
    return None


def _unturned(graph: Graph, output: int) -> int:
    """Return what the first reshape behind the norm's arithmetic takes, or the output itself."""
    found, node = output, graph.nodes[output]
    while node.operands and (node.operation in CASTS or node.operation in RESHAPES):
        before = node.operands[0]
        found = before if node.operation in RESHAPES else found
        node = graph.nodes[before]
    return found


def _fitting(shape: tuple[int, ...], source: tuple[int, ...], norm: Norm) -> int | None:
    """Return into how many groups the last axes of `shape` split, 0 for none, None for no fit."""
    groups = norm.groups or 0
    if shape == source:
        return groups
    if groups and len(shape) == len(source) + 1:
        return 0  # left split into its groups
    joined = norm.axes == (-1,) and len(source) > 1 and not groups
    if joined and shape == (*source[:-2], source[-2] * source[-1]):
        return source[-2]  # split before the norm and joined by it
    return None
