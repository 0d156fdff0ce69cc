"""Condensed graph -> the residual stream: its adds in order, their links and their nesting."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from normscope.graph import Graph
from normscope.residuals.adds import ResidualAdd, find_residual_adds
from normscope.residuals.branches import Branch, branches_of
from normscope.residuals.carried import sums_behind
from normscope.residuals.choosers import without_choosers
from normscope.residuals.nesting import kept_with_parents
from normscope.residuals.projected import find_projected_adds
from normscope.residuals.rejoined import with_skips_counted, without_side_inputs
from normscope.residuals.side_adds import side_adds
from normscope.residuals.steering import without_steering
from normscope.residuals.steps import StepKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAdd:
    """A residual add with its branches and its place in the stream."""

    add: ResidualAdd
    branches: tuple[Branch, ...]
    previous: tuple[int, ...]
    """The sums whose value this add's stream value carries on."""
    parent: int | None
    """The sum of the branch that this add stands inside of: an inner stream; None outside."""
    side: bool = False
    """Whether the sum is only what the branch around it reads, and the skip goes around both."""


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
    found = with_skips_counted(graph, dict(sorted(found.items())))
    found = without_side_inputs(graph, found)
    whole = {node: branches_of(graph, add, frozenset()) for node, add in found.items()}
    found = without_choosers(graph, found, whole)
    found = without_steering(graph, found, whole)
    whole = {node: whole[node] for node in found}
    previous = {node: tuple(sums_behind(graph, add.stream, found)) for node, add in found.items()}
    parents = kept_with_parents(graph, found, whole, previous)
    sides = side_adds(graph, found, whole, parents)
    parents = dict(sorted({**parents, **sides}.items()))
    kept = {node: found[node] for node in parents}
    branches = _marked_parallel(graph, kept, _told_apart(graph, found, whole, frozenset(parents)))
    parents, branches = _twins_merged(graph, found, parents, branches)
    return ResidualStream(
        adds={
            node: StreamAdd(
                add=found[node],
                branches=branches[node],
                previous=tuple(item for item in previous[node] if item in parents),
                parent=parents[node],
                side=node in sides,
            )
            for node in found
            if node in parents
        },
        skipped=tuple(add for node, add in found.items() if node not in parents),
    )


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
                    own=twin.own | part.own,
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
    graph: Graph, found: Mapping[int, ResidualAdd], branches: Mapping[int, tuple[Branch, ...]]
) -> dict[int, tuple[Branch, ...]]:
    """Mark the branches of sums in a row that read one stream value: x + f(x) + g(x).

    A branch that reaches back over several blocks runs beside them, and is no twin of one.
    """
    twins = {
        node
        for add in found.values()
        if (earlier := _beside(graph, add, found)) is not None
        for node in (add.node, earlier)
    }
    return {
        node: tuple(replace(branch, parallel=node in twins or len(parts) > 1) for branch in parts)
        for node, parts in branches.items()
    }


def _beside(graph: Graph, add: ResidualAdd, found: Mapping[int, ResidualAdd]) -> int | None:
    """Return the sum with whose branch this add's branch shares its stream value.

    It may lie several sums back (LongCat adds a mixture at the end of a block that reads what the
    block's first MLP reads), but only within one run of the block.
    """
    earlier = found.get(add.parallel_to) if add.parallel_to is not None else None
    if earlier is not None and earlier.stream == add.stream:
        return earlier.node
    while earlier is not None and graph.nodes[earlier.node].call == graph.nodes[add.node].call:
        if earlier.stream == add.stream:
            return earlier.node
        earlier = found.get(earlier.stream)
    return None


def _twin_before(add: ResidualAdd, found: Mapping[int, ResidualAdd]) -> int | None:
    """Return the sum that this add's skip passed, if its branch reads the same stream value."""
    earlier = found.get(add.parallel_to) if add.parallel_to is not None else None
    return earlier.node if earlier is not None and earlier.stream == add.stream else None
