"""Graph + norms -> the same graph with each norm as one operation."""

from collections.abc import Sequence
from dataclasses import replace

from normscope.graph import Graph
from normscope.norms.norm import Norm
from normscope.operations import NORMALIZE


def condense_norms(graph: Graph, norms: Sequence[Norm]) -> Graph:
    """Return the graph with each norm's output reading its input directly.

    Indices stay as they are: the output's node becomes one `normalize`, and the arithmetic in
    between is cut off from what it read, unless something else reads it too.
    """
    nodes = list(graph.nodes)
    for norm in norms:
        for index in norm.interior:
            if norm.interior.issuperset(graph.consumers[index]):
                nodes[index] = replace(nodes[index], operands=(), slots=())
        nodes[norm.output] = replace(
            nodes[norm.output],
            operation=NORMALIZE,
            operands=(norm.input,),
            slots=("self",),
            arguments=None,
        )
    return replace(graph, nodes=tuple(nodes))
