"""Residual adds + branches -> which adds make up a stream, and which are parts of a branch.

An add inside the branch of another is part of what that branch computes, unless it belongs to a
stream that runs inside of it or beside it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from normscope.graph import Graph
from normscope.operations import NORMALIZE, mixes
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.branches import Branch
from normscope.residuals.steps import StepKind, is_activation


def _enclosing(
    found: Mapping[int, ResidualAdd], branches: Mapping[int, Sequence[Branch]]
) -> dict[int, list[int]]:
    """Return for each add the adds whose branches it stands in, innermost first."""
    enclosing: dict[int, list[int]] = {node: [] for node in found}
    for outer in found:
        inside = {node for branch in branches[outer] for node in branch.nodes if node in found}
        for node in inside - {outer}:
            enclosing[node].append(outer)
    return enclosing


def kept_with_parents(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    branches: Mapping[int, Sequence[Branch]],
    previous: Mapping[int, Sequence[int]],
) -> dict[int, int | None]:
    """Return the adds of the outer stream and of inner streams, each with the add around it.

    A stream inside a branch has at least two adds in a row with weights in their branches
    (MobileBERT); a single skip around a convolution, or the state of a scan, is none. Outer adds
    come after the inner ones, so going backward each add meets those around it already decided.
    """
    enclosing = _nested_in(graph, found, _enclosing(found, branches), previous)
    neighbours = _neighbours(found, previous)
    rows = {add.parallel_to: node for node, add in found.items()}
    weighted = {node for node in found if _has_weights(graph, branches[node])}
    parents: dict[int, int | None] = {}
    for node in sorted(found, reverse=True):
        around = _innermost(enclosing[node], parents)
        beside = {
            other for other in neighbours[node] if _innermost(enclosing[other], parents) == around
        }
        # One of a row of sums that itself goes on.
        linked = bool(beside) or (rows.get(node) in parents and parents[rows[node]] == around)
        # A step without weights among those that have some: Autoformer takes an average away.
        own = not _is_gated(found[node]) and (node in weighted or not weighted.isdisjoint(beside))
        if around is None or (linked and own):
            parents[node] = around
    return _without_parts(graph, found, dict(sorted(parents.items())))


def _neighbours(
    found: Mapping[int, ResidualAdd], previous: Mapping[int, Sequence[int]]
) -> dict[int, set[int]]:
    """Return the sums that each add goes on from, and those that go on from it."""
    neighbours: dict[int, set[int]] = {node: set(previous[node]) for node in found}
    for node in found:
        for earlier in previous[node]:
            neighbours[earlier].add(node)
    return neighbours


def _without_parts(
    graph: Graph, found: Mapping[int, ResidualAdd], parents: Mapping[int, int | None]
) -> dict[int, int | None]:
    """Leave out sums that most other blocks of the list make inside of a branch.

    A block without a skip (the first of a FunASR encoder) has no branch around the inner sums of
    its attention; they are what they are in the other blocks.
    """
    places = {node: _place_in_code(graph, node) for node in found}
    kept = Counter(places[node] for node in parents)
    parts = Counter(place for node, place in places.items() if node not in parents)
    return {
        node: parent
        for node, parent in parents.items()
        if "*" not in places[node][0] or kept[places[node]] >= parts[places[node]]
    }


def _place_in_code(graph: Graph, index: int) -> tuple[str, int, str]:
    """Return the module with its indices left out, the operation's number and its line."""
    node = graph.nodes[index]
    path = ".".join("*" if part.isdecimal() else part for part in node.module.split("."))
    source = node.source
    return path, node.ordinal, "" if source is None else f"{source.file}:{source.line}"


def _nested_in(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    enclosing: Mapping[int, list[int]],
    previous: Mapping[int, Sequence[int]],
) -> dict[int, list[int]]:
    """Tell an inner stream from one that runs beside: two streams that read each other in turn.

    An inner stream begins inside the branch around it. An add that goes on from a sum outside of
    that branch belongs to a stream of its own, unless it only shares its start with the branch.
    """
    nested: dict[int, list[int]] = {}
    for node, around in enclosing.items():
        earlier = [sums for sums in previous[node] if _goes_on(graph, found[node].stream, sums)]
        nested[node] = [
            outer
            for outer in around
            if _passes(found[node], found[outer].stream)
            or all(outer in nested[sums] for sums in earlier)
        ]
    return _without_escaped(graph, found, nested, previous)


def _without_escaped(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    nested: Mapping[int, list[int]],
    previous: Mapping[int, Sequence[int]],
) -> dict[int, list[int]]:
    """Leave out what a stream goes on from outside of the branch: the other half of a reversible
    pair, whose first sums lie in the branch of the half that reads it.
    """
    kept = {node: list(around) for node, around in nested.items()}
    for node in sorted(found, reverse=True):
        for sums in previous[node]:
            if _goes_on(graph, found[node].stream, sums):
                kept[sums] = [outer for outer in kept[sums] if outer == node or outer in kept[node]]
    return kept


def _passes(add: ResidualAdd, value: int) -> bool:
    """Tell whether a value lies on an add's skip: the stream, its start, or what is in between."""
    return value in {add.stream, add.skip} or any(step.value == value for step in add.steps)


def _goes_on(graph: Graph, stream: int, sums: int) -> bool:
    """Tell whether a stream value is a sum, or a norm that all uses of the sum go through."""
    readers = [graph.nodes[index].operation for index in graph.consumers[sums]]
    return stream == sums or all(operation == NORMALIZE for operation in readers)


def _innermost(enclosing: Sequence[int], kept: Mapping[int, int | None]) -> int | None:
    return next((outer for outer in enclosing if outer in kept), None)


def _is_gated(add: ResidualAdd) -> bool:
    return add.branch_factor == "g" or any(step.kind is StepKind.GATE for step in add.steps)


def _has_weights(graph: Graph, branches: Sequence[Branch]) -> bool:
    """Tell whether every branch mixes by a stored weight somewhere."""
    return all(
        any(
            mixes(graph.nodes[index].operation)
            and any(not is_activation(graph, operand) for operand in graph.nodes[index].operands)
            for index in branch.nodes
        )
        for branch in branches
    )
