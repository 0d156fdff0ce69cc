"""A running copy with its placed branches -> what interventions show of each of them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import torch

from normscope.assembly import PlacedRoot
from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import INTEGER_DTYPES, mixes
from normscope.placement.lists import stack_path
from normscope.placement.place import PlacedBlock, PlacedModel
from normscope.placement.sites import PlacedBranch
from normscope.placement.vocabulary import Site
from normscope.residuals.ancestry import nodes_between
from normscope.verification.cuts import Cuts, cuts_of, first_products
from normscope.verification.observe import (
    Behind,
    ObservedBranch,
    observe_branch,
    seen_values,
    watched_of,
)
from normscope.verification.rerun import Edit, Subject, Values, rerun

_NEXT_PRODUCTS = 16
_NEXT_SUMS = 4
"""Sums that are looked at behind a sum; those behind them carry on what they carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBranch:
    """One branch of the copy with what was seen of it, or why nothing was."""

    block: PlacedBlock
    placed: PlacedBranch
    seen: ObservedBranch | str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    block: PlacedBlock
    placed: PlacedBranch
    cuts: Cuts
    behind: Behind
    ended: tuple[int, ...]
    """The inputs of the norms that are said to stand at its end."""
    projected: bool


def chosen_blocks(blocks: Sequence[PlacedBlock]) -> list[PlacedBlock]:
    """Return the first and the last run of the blocks of each stack that look alike.

    Behind the first the stream goes on, so its sums tell a norm on the trunk from a final one.
    """
    alike: dict[object, list[PlacedBlock]] = {}
    for block in blocks:
        facts = tuple(
            (item.branch.kind, item.formula, frozenset(item.sites)) for item in block.branches
        )
        alike.setdefault((stack_path(block.key.path), facts), []).append(block)
    return [block for same in alike.values() for block in (same[0], *same[1:][-1:])]


def observe_model(subject: Subject, root: PlacedRoot) -> Iterator[SeenBranch]:
    """Yield the branches of the chosen blocks with what interventions show of each.

    Raises `NormscopeError` where a second run does not give the values of the first.
    """
    graph, placed = subject.graph, root.placed
    stored = {norm.output for norm in root.norms if _is_stored(graph, norm)}
    inputs = {norm.output: norm.input for norm in root.norms}
    prepared: list[_Prepared] = []
    for block in chosen_blocks(placed.blocks):
        for branch in block.branches:
            entering = _entering(branch, inputs)
            reason = _uncuttable(graph, branch, entering, stored)
            if reason is not None:
                yield SeenBranch(block=block, placed=branch, seen=reason)
                continue
            prepared.append(_prepare(graph, placed, block, branch, inputs))
    if not prepared:
        return
    everything = [item for one in prepared for item in watched_of(one.cuts, one.behind, one.ended)]
    baseline = _baseline(subject, Edit(watched=tuple(dict.fromkeys(everything))))
    for one in prepared:
        yield SeenBranch(block=one.block, placed=one.placed, seen=_observed(subject, baseline, one))
    subject.kept.clear()


def _baseline(subject: Subject, nothing: Edit) -> Values:
    first = rerun(subject, nothing)
    try:
        second = rerun(subject, nothing, keep=True)
    except NormscopeError:  # to hold a result may be what sends torch another way
        second = rerun(subject, nothing)
    if any(not _are_equal(value, second[item]) for item, value in first.items()):
        raise NormscopeError(FailureKind.TRACE_FAILED, "each run of it gives other values")
    return first


def _are_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(first.nan_to_num(), second.nan_to_num())


def _observed(subject: Subject, baseline: Values, one: _Prepared) -> ObservedBranch | str:
    watched = watched_of(one.cuts, one.behind, one.ended)
    if not all(bool(baseline[item].isfinite().all()) for item in watched):
        return "its values in the copy are not finite"
    if not any(bool(baseline[edge].any()) for edge in one.cuts.entries):
        return "nothing of the copy's inputs goes through it"
    if not bool(baseline[one.cuts.into_branch[0]].any()):
        return "what enters it is zero in the copy"
    try:
        return observe_branch(
            subject,
            baseline,
            one.cuts,
            one.behind,
            ended=one.ended,
            projected=one.projected,
        )
    except NormscopeError as error:
        return error.message


def _is_stored(graph: Graph, norm: Norm) -> bool:
    """Tell whether a norm's stored statistics are written into its arithmetic."""
    return norm.frozen_statistics and "running_mean" not in graph.nodes[norm.output].slots


def _entering(placed: PlacedBranch, inputs: Mapping[int, int]) -> int:
    """Return the value that enters a branch and its skip; `inputs` are those of each norm.

    Where the skip is taken from the norm's output (BiT), x is what goes into the norm.
    """
    stream = placed.branch.add.stream
    before = [norm for norm in placed.sites.get(Site.BRANCH_INPUT, ()) if norm <= stream]
    return inputs[before[0]] if before else stream


def _uncuttable(graph: Graph, placed: PlacedBranch, entering: int, stored: Set[int]) -> str | None:
    """Return why a branch cannot be intervened in, or None."""
    if any(not stored.isdisjoint(outputs) for outputs in placed.sites.values()):
        return "a norm of it divides by what is stored, not by what it reads"
    if not placed.has_skip:
        return "no skip goes around it"
    if placed.beside_skip:
        return "its sum is only what the branch around it reads"
    add = placed.branch.add
    node = graph.nodes[add.node]
    if node.operation == "write":
        return "its sum is written piece by piece"
    if add.skip not in node.operands or add.branch not in node.operands:
        return "its sum is more than one operation"
    cuts = cuts_of(graph, placed.branch, entering)
    if not cuts.into_branch or not cuts.entries:
        return "nothing in it reads the stream through a product"
    return None


def _prepare(
    graph: Graph,
    placed: PlacedModel,
    block: PlacedBlock,
    branch: PlacedBranch,
    inputs: Mapping[int, int],
) -> _Prepared:
    add, entering = branch.branch.add, _entering(branch, inputs)
    beside = nodes_between(graph, entering, add.skip) if add.skip > entering else ()
    return _Prepared(
        block=block,
        placed=branch,
        cuts=cuts_of(graph, branch.branch, entering),
        behind=_behind(graph, placed, block, add.node, inputs),
        ended=seen_values(
            graph, [inputs[norm] for norm in branch.sites.get(Site.BRANCH_OUTPUT, ())]
        ),
        projected=any(mixes(graph.nodes[index].operation) for index in beside),
    )


def _behind(
    graph: Graph, placed: PlacedModel, block: PlacedBlock, node: int, inputs: Mapping[int, int]
) -> Behind:
    """Return the next sums that a sum reaches, and outputs; whether its stack ends there.

    The outputs are those that it reaches past the next sums, or all where there are none. A stack
    ends too where the next skip is taken from a norm's output (Hiera where its width grows): that
    norm belongs to the next block.
    """
    stack = block.key.path.rpartition(".")[0]
    reached = _reached(graph, node)
    later: list[int] = []
    ends, first = True, None
    for other in placed.blocks:
        for branch in other.branches:
            add = branch.branch.add
            if add.node not in reached or not branch.has_skip:
                continue
            if first is None or add.node < first.branch.add.node:
                first = branch
            later.append(add.node)
            ends = ends and other.key.path.rpartition(".")[0] != stack
    ends = ends or (first is not None and _entering(first, inputs) != first.branch.add.stream)
    sums = seen_values(graph, sorted(set(later)))
    showing = _reached_past(graph, node, later) if sums else reached
    outputs = seen_values(graph, [value for value in graph.outputs if value in showing])
    entries = first_products(graph, node, reached)[:_NEXT_PRODUCTS]
    sums = sums[:_NEXT_SUMS]
    return Behind(values=(*entries, *sums, *outputs), sums=sums, ends=ends)


def _reached(graph: Graph, start: int) -> set[int]:
    reached = {start}
    for node in graph.nodes[start + 1 :]:
        if any(operand in reached for operand in node.operands):
            reached.add(node.index)
    return reached - {start}


def _reached_past(graph: Graph, start: int, sums: Sequence[int]) -> set[int]:
    """Return what a value reaches past all products and sums, and not as a choice of others."""
    reached, closed = {start}, set(sums)
    for node in graph.nodes[start + 1 :]:
        ends = node.index in closed or mixes(node.operation) or node.dtype in INTEGER_DTYPES
        if not ends and any(operand in reached for operand in node.operands):
            reached.add(node.index)
    return reached - {start}
