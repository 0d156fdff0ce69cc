"""Graph + norms -> the same graph with each norm as one operation."""

from collections.abc import Sequence
from dataclasses import replace

from normscope.graph import Graph
from normscope.norms.norm import Norm
from normscope.operations import NORMALIZE


def condense_norms(graph: Graph, norms: Sequence[Norm]) -> Graph:
    """Return the graph with each norm's output reading its input directly.

    Indices stay as they are: the output's node becomes one `normalize`, and the arithmetic in
    between keeps its nodes, which then lead nowhere.
    """
    nodes = list(graph.nodes)
    for norm in norms:
        nodes[norm.output] = replace(
            nodes[norm.output],
            operation=NORMALIZE,
            operands=(norm.input,),
            slots=("self",),
            arguments=None,
        )
    return replace(graph, nodes=tuple(nodes))
