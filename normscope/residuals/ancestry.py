"""Whether a value is made from an earlier one, and whether a mixing operation lies between."""

import heapq

from normscope.graph import Graph
from normscope.operations import INTEGER_DTYPES, mixes


class Ancestry:
    """The ancestors of one value, explored backward only as far as they are asked for.

    Nodes are visited in falling order of index, so all readers of a node inside the branch are
    known before the node itself: one visit each, no sets of ancestors are kept for other values.
    A mask or an index that was computed from a value does not carry it: the walk ends there.
    """

    def __init__(self, graph: Graph, value: int) -> None:
        self._graph = graph
        self._heap = [-value]
        self._mixed: dict[int, bool] = {value: False}
        """Visited or pending node -> whether some path from it passes a mixing operation."""

    def explore(self, bound: int) -> None:
        """Visit every ancestor with an index above `bound`."""
        while self._heap and -self._heap[0] > bound:
            node = self._graph.nodes[-heapq.heappop(self._heap)]
            if node.dtype in INTEGER_DTYPES:
                continue
            beyond = self._mixed[node.index] or mixes(node.operation)
            for operand in node.operands:
                if operand not in self._mixed:
                    heapq.heappush(self._heap, -operand)
                    self._mixed[operand] = beyond
                elif beyond:
                    self._mixed[operand] = True

    def mixed_from(self, ancestor: int) -> bool:
        """Tell whether `ancestor` reaches the value through a mixing operation."""
        self.explore(ancestor)
        return self._mixed.get(ancestor, False)

    def reaches(self, ancestor: int) -> bool:
        """Tell whether `ancestor` reaches the value at all."""
        self.explore(ancestor)
        return ancestor in self._mixed


def nodes_between(graph: Graph, start: int, end: int) -> frozenset[int]:
    """Return the nodes on the paths from `start` (left out) to `end` (included)."""
    known = graph.paths.get((start, end))
    if known is None:
        known = graph.paths[start, end] = _nodes_between(graph, start, end)
    return known


def _nodes_between(graph: Graph, start: int, end: int) -> frozenset[int]:
    above: set[int] = {end}
    heap = [-end]
    backward: list[int] = []
    while heap and -heap[0] > start:
        index = -heapq.heappop(heap)
        if graph.nodes[index].dtype in INTEGER_DTYPES:
            continue
        backward.append(index)
        for operand in graph.nodes[index].operands:
            if operand >= start and operand not in above:
                above.add(operand)
                heapq.heappush(heap, -operand)
    reached = {start}
    for index in reversed(backward):
        if any(operand in reached for operand in graph.nodes[index].operands):
            reached.add(index)
    return frozenset(reached - {start})
