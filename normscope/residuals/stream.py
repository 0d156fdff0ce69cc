"""Condensed graph -> the residual stream: its adds in order, their links and their nesting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from normscope.graph import Graph
from normscope.operations import NORMALIZE, mixes
from normscope.residuals.adds import ResidualAdd, find_residual_adds
from normscope.residuals.branches import Branch, branches_of
from normscope.residuals.carried import sums_behind
from normscope.residuals.projected import find_projected_adds
from normscope.residuals.steps import StepKind, is_activation, steps_back

_LINK_VALUES = 96
"""Values that a link between two adds may pass (window shifts, patch merging, streams stacked)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAdd:
    """A residual add with its branches and its place in the stream."""

    add: ResidualAdd
    branches: tuple[Branch, ...]
    previous: tuple[int, ...]
    """The sums whose value this add's stream value carries on."""
    parent: int | None
    """The sum of the branch that this add stands inside of: an inner stream; None outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualStream:
    """All residual adds of a forward pass, in order of execution, by the index of their sum."""

    adds: Mapping[int, StreamAdd]
    skipped: tuple[ResidualAdd, ...]
    """Adds inside a branch that carry no stream on: a skip around one convolution, a scan."""


def find_stream(graph: Graph) -> ResidualStream:
    """Find the residual adds, link each to the ones before it, and set inner skips apart."""
    found = dict(find_residual_adds(graph))
    found |= find_projected_adds(graph, found)
    found = _without_side_inputs(graph, dict(sorted(found.items())))
    whole = {node: branches_of(graph, add, frozenset()) for node, add in found.items()}
    previous = {node: tuple(sums_behind(graph, add.stream, found)) for node, add in found.items()}
    parents = _kept_with_parents(graph, found, whole, previous)
    branches = _marked_parallel(found, _told_apart(graph, found, whole, frozenset(parents)))
    parents, branches = _twins_merged(graph, found, parents, branches)
    return ResidualStream(
        adds={
            node: StreamAdd(
                add=found[node],
                branches=branches[node],
                previous=tuple(item for item in previous[node] if item in parents),
                parent=parents[node],
            )
            for node in found
            if node in parents
        },
        skipped=tuple(add for node, add in found.items() if node not in parents),
    )


def _without_side_inputs(graph: Graph, found: Mapping[int, ResidualAdd]) -> dict[int, ResidualAdd]:
    """Leave out sums that only prepare what a branch reads: the stream plus a position embedding.

    Where the embedding is an early value of the stream itself (SAM), the sum has the form of a long
    skip; but no later add goes on from it, and it ends in the branch of one.
    """
    going_on = {
        earlier for add in found.values() for earlier in sums_behind(graph, add.stream, found)
    }
    return {
        node: add
        for node, add in found.items()
        if node in going_on
        or not _carries_a_sum(graph, add.branch, found)
        or not _reaches_any(graph, node, found)
    }


def _carries_a_sum(graph: Graph, value: int, found: Mapping[int, ResidualAdd]) -> bool:
    for _ in range(_LINK_VALUES):
        if value in found:
            return True
        steps = [step for step in steps_back(graph, value) if step.kind is not StepKind.GATE]
        if len(steps) != 1:
            return False
        value = steps[0].value
    return False


def _reaches_any(graph: Graph, value: int, found: Mapping[int, ResidualAdd]) -> bool:
    last = max(found)
    pending, seen = [value], {value}
    for current in pending:
        for reader in graph.consumers[current]:
            if reader in found:
                return True
            if reader not in seen and reader < last:
                seen.add(reader)
                pending.append(reader)
    return False


def _told_apart(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    branches: Mapping[int, tuple[Branch, ...]],
    kept: frozenset[int],
) -> dict[int, tuple[Branch, ...]]:
    """Name the branches again that other adds of a stream stand in, by what is their own."""
    return {
        node: branches_of(graph, found[node], kept - {node})
        if any(not kept.isdisjoint(branch.nodes) for branch in parts)
        else parts
        for node, parts in branches.items()
    }


def _twins_merged(
    graph: Graph,
    found: Mapping[int, ResidualAdd],
    parents: dict[int, int | None],
    branches: dict[int, tuple[Branch, ...]],
) -> tuple[dict[int, int | None], dict[int, tuple[Branch, ...]]]:
    """Take sums in a row of branches of one kind for one branch: a sum of two convolutions.

    It is the same whether the code adds the two first, or each to the stream.
    """
    merged = dict(branches)
    dropped: set[int] = set()
    for node, add in found.items():
        earlier = _twin_before(add, found)
        if earlier is None:
            continue
        first, second = merged[earlier], merged[node]
        same_place = graph.nodes[earlier].call == graph.nodes[node].call
        if same_place and [part.kind for part in first] == [part.kind for part in second]:
            merged[node] = tuple(
                replace(
                    part,
                    nodes=twin.nodes | part.nodes,
                    entries=twin.entries + part.entries,
                    tail=part.tail
                    + tuple(step for step in twin.tail if step.kind is StepKind.NORM),
                    parallel=False,
                )
                for twin, part in zip(first, second, strict=True)
            )
            dropped.add(earlier)
    kept = {node: parent for node, parent in parents.items() if node not in dropped}
    return kept, merged


def _marked_parallel(
    found: Mapping[int, ResidualAdd], branches: Mapping[int, tuple[Branch, ...]]
) -> dict[int, tuple[Branch, ...]]:
    """Mark the branches of sums in a row that read one stream value: x + f(x) + g(x).

    A branch that reaches back over several blocks runs beside them, and is no twin of one.
    """
    twins = {
        node
        for add in found.values()
        if (earlier := _twin_before(add, found)) is not None
        for node in (add.node, earlier)
    }
    return {
        node: tuple(replace(branch, parallel=node in twins or len(parts) > 1) for branch in parts)
        for node, parts in branches.items()
    }


def _twin_before(add: ResidualAdd, found: Mapping[int, ResidualAdd]) -> int | None:
    """Return the sum that this add's skip passed, if its branch reads the same stream value."""
    earlier = found.get(add.parallel_to) if add.parallel_to is not None else None
    return earlier.node if earlier is not None and earlier.stream == add.stream else None


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


def _kept_with_parents(
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
    neighbours: dict[int, set[int]] = {node: set(previous[node]) for node in found}
    for node in found:
        for earlier in previous[node]:
            neighbours[earlier].add(node)
    parents: dict[int, int | None] = {}
    for node in sorted(found, reverse=True):
        around = _innermost(enclosing[node], parents)
        linked = any(_innermost(enclosing[other], parents) == around for other in neighbours[node])
        own = not _is_gated(found[node]) and _has_weights(graph, branches[node])
        if around is None or (linked and own):
            parents[node] = around
    return dict(sorted(parents.items()))


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
            if found[outer].stream == found[node].stream
            or all(outer in nested[sums] for sums in earlier)
        ]
    return nested


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
