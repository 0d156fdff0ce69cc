"""One branch of a traced graph -> the operands and values at which it is cut to look at it.

All of it is read off the plain graph, in which a norm is arithmetic like any other.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.operations import INTEGER_DTYPES, keeps_elements, mixes
from normscope.residuals import Branch
from normscope.residuals.ancestry import nodes_between
from normscope.verification.rerun import Edge

_MOST_WAISTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where a branch is changed and looked at."""

    nodes: frozenset[int]
    """All values on the way from the stream to the branch's last one."""
    into_branch: tuple[Edge, ...]
    """Every operand by which the branch reads the stream value."""
    into_skip: tuple[Edge, ...]
    """Every operand by which the skip does; none where the add reads the stream value itself."""
    entries: tuple[Edge, ...]
    """The operands of its first mixing operations that come from the stream."""
    before: Mapping[Edge, tuple[int, ...]]
    """For each of those, the values that all of it goes through on its way from the stream."""
    waists: tuple[int, ...]
    """The values behind its last mixing operation that all of the branch goes through."""
    skip: Edge
    """The add's operand from the skip."""
    branch: Edge
    """The add's operand from the branch."""
    output: int
    """The branch's last value, which may be one part of the add's operand."""
    whole_branch: int
    """That operand."""


def cuts_of(graph: Graph, branch: Branch, stream: int) -> Cuts:
    """Find the cuts of one branch; `stream` is the value that enters it and its skip."""
    add = branch.add
    nodes = nodes_between(graph, stream, branch.output) or frozenset({add.node})
    beside = nodes_between(graph, stream, add.skip) if add.skip > stream else frozenset()
    entries = first_products(graph, stream, nodes)
    operands = graph.nodes[add.node].operands
    return Cuts(
        nodes=nodes,
        into_branch=_edges_from(graph, stream, nodes),
        into_skip=_edges_from(graph, stream, beside),
        entries=entries,
        before={edge: _before(graph, stream, edge) for edge in entries},
        waists=_waists(graph, nodes, branch.output, start=_last_product(graph, nodes)),
        skip=Edge(reader=add.node, position=operands.index(add.skip)),
        branch=Edge(reader=add.node, position=operands.index(add.branch)),
        output=branch.output,
        whole_branch=add.branch,
    )


def _edges_from(graph: Graph, value: int, readers: Iterable[int]) -> tuple[Edge, ...]:
    return tuple(
        Edge(reader=reader, position=position)
        for reader in sorted(readers)
        for position, operand in enumerate(graph.nodes[reader].operands)
        if operand == value and graph.nodes[reader].operation not in {"write", "getitem"}
    )


def first_products(graph: Graph, stream: int, nodes: Iterable[int]) -> tuple[Edge, ...]:
    """Return the operands by which the first mixing operations among `nodes` read a value."""
    reached = {stream}
    found: list[Edge] = []
    for index in sorted(nodes):
        node = graph.nodes[index]
        places = [place for place, operand in enumerate(node.operands) if operand in reached]
        if places and mixes(node.operation):
            found += [Edge(reader=index, position=place) for place in places]
        elif places:
            reached.add(index)
    return tuple(
        edge
        for edge in found
        if graph.nodes[graph.nodes[edge.reader].operands[edge.position]].dtype not in INTEGER_DTYPES
    )


def goes_past(graph: Graph, cuts: Cuts, start: int, products: Container[int]) -> bool:
    """Tell whether a value reaches the branch's end otherwise than through some products."""
    reached = {start}
    for index in sorted(cuts.nodes):
        if index not in products and any(one in reached for one in graph.nodes[index].operands):
            reached.add(index)
    return cuts.output in reached


def _before(graph: Graph, stream: int, edge: Edge) -> tuple[int, ...]:
    """Return the values between the stream and an operand that no path goes around."""
    operand = graph.nodes[edge.reader].operands[edge.position]
    nodes = nodes_between(graph, stream, operand) if operand > stream else frozenset[int]()
    readers = (reader for reader in graph.consumers[stream] if reader in nodes)
    return _waists(graph, nodes, operand, start=max(readers, default=stream))


def _last_product(graph: Graph, nodes: Iterable[int]) -> int:
    return max((index for index in nodes if mixes(graph.nodes[index].operation)), default=0)


def _waists(graph: Graph, nodes: frozenset[int], output: int, *, start: int) -> tuple[int, ...]:
    """Return the values from `start` on that no path through the nodes before goes around."""
    furthest = 0
    found: list[int] = []
    for index in sorted(nodes):
        own = graph.nodes[index]
        if index >= start and furthest <= index and own.output == 0:
            found.append(index)
        readers = [reader for reader in graph.consumers[index] if reader in nodes]
        furthest = max((furthest, *readers))
    kept = [index for index in found if not _is_passed_on(graph, index, nodes)]
    return tuple(index for index in kept if index != output and _is_real(graph, index))[
        :_MOST_WAISTS
    ]


def _is_passed_on(graph: Graph, index: int, nodes: frozenset[int]) -> bool:
    """Tell whether the next value is the same but for its shape, and so the better waist."""
    readers = [graph.nodes[reader] for reader in graph.consumers[index] if reader in nodes]
    return len(readers) == 1 and keeps_elements(readers[0].operation)


def _is_real(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    return node.operation != "write" and node.dtype not in INTEGER_DTYPES
