"""Blocks -> stacks of groups: blocks that would read the same are told once, with their indices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from normscope.audit.misleading_names import contradiction
from normscope.inspection import (
    BlockReport,
    BranchReport,
    Inspection,
    NormReport,
    Placement,
    Role,
    Site,
)
from normscope.render.figures import all_of, counted, index_ranges
from normscope.render.footnotes import Footnotes
from normscope.render.names import siblings_as_one, within_block
from normscope.render.norm_facts import NormFacts
from normscope.render.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class SitedNorm:
    """Norms at one site of a branch; numbered siblings are one."""

    site: Site
    name: str
    facts: str
    """What it computes, where that differs from the usual norm of the blocks."""
    footnote: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSummary:
    """One branch as it reads in every block of its group."""

    kind: str
    placement: Placement
    formula: str
    footnote: int | None
    norms: tuple[SitedNorm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSummary:
    """What is said of a block: equal for all blocks of a group."""

    calls: int
    branches: tuple[BranchSummary, ...]
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGroup:
    """The blocks of a stack that read the same."""

    indices: str
    block: BlockSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSummary:
    """A stack, or one block that stands alone."""

    path: str
    size: str
    groups: tuple[BlockGroup, ...]


@dataclass(frozen=True, slots=True)
class _Context:
    norms: Mapping[str, NormReport]
    usual: NormFacts | None
    footnotes: Footnotes


def summarize_stacks(
    inspection: Inspection, usual: NormFacts | None, footnotes: Footnotes
) -> tuple[StackSummary, ...]:
    """Tell the stacks in order, then the blocks that belong to none.

    `usual` are the facts of a norm that need no words.
    """
    context = _Context({norm.name: norm for norm in inspection.norms}, usual, footnotes)
    stacks = [
        _stack(stack.path, [b for b in inspection.blocks if b.stack == stack.path], context)
        for stack in inspection.stacks
    ]
    known = {stack.path for stack in inspection.stacks}
    alone = [
        _stack(block.path, [block], context)
        for block in inspection.blocks
        if block.stack not in known
    ]
    return (*stacks, *alone)


def _stack(path: str, blocks: list[BlockReport], context: _Context) -> StackSummary:
    groups: dict[BlockSummary, list[int]] = {}
    for position, block in enumerate(blocks):
        index = position if block.index is None else block.index
        groups.setdefault(_block(block, context), []).append(index)
    return StackSummary(
        path=visible(path) or "the module itself",
        size=_size(len(blocks), tuple(groups)),
        groups=tuple(
            BlockGroup(indices=index_ranges(indices), block=summary)
            for summary, indices in groups.items()
        ),
    )


def _size(count: int, groups: tuple[BlockSummary, ...]) -> str:
    size = counted(count, "block")
    if len(groups) > 1:
        return f"{size} in {len(groups)} variants"
    alike = ", all alike" if count > 1 else ""
    return f"{size}{alike}{calls_text(groups[0].calls) if groups else ''}"


def calls_text(calls: int) -> str:
    """Return what is odd about the number of runs: `, run 12 times`; nothing for one run."""
    if calls == 1:
        return ""
    return f", run {calls} times" if calls else ", built and never run"


def _block(block: BlockReport, context: _Context) -> BlockSummary:
    return BlockSummary(
        calls=block.calls,
        branches=tuple(_branch(branch, block, context) for branch in block.branches),
        remark=_parallel_remark(block.branches),
    )


def _parallel_remark(branches: Iterable[BranchReport]) -> str:
    parallel = [branch for branch in branches if branch.parallel]
    if not parallel:
        return ""
    kinds = all_of(branch.kind.value for branch in parallel)
    shared = ", through one shared norm" if all(b.shared_norm for b in parallel) else ""
    return f"{kinds} in parallel: both read the same x{shared}"


def _branch(branch: BranchReport, block: BlockReport, context: _Context) -> BranchSummary:
    return BranchSummary(
        kind=branch.kind.value,
        placement=branch.placement,
        formula=visible(branch.formula),
        footnote=context.footnotes.mark(None if branch.reason is None else visible(branch.reason)),
        norms=tuple(
            norm
            for site in Site
            for norm in _at_site(site, branch.norms.get(site, ()), branch, block, context)
        ),
    )


def _at_site(
    site: Site, names: Iterable[str], branch: BranchReport, block: BlockReport, context: _Context
) -> Iterable[SitedNorm]:
    groups: dict[tuple[str, int | None], list[str]] = {}
    for name in names:
        facts = _unusual(name, context)
        mark = context.footnotes.mark(contradiction(name, Role(site.value), branch.kind))
        groups.setdefault((facts, mark), []).append(within_block(name, block.path))
    return (
        SitedNorm(site=site, name=name, facts=facts, footnote=mark)
        for (facts, mark), members in groups.items()
        for name in siblings_as_one(dict.fromkeys(members))
    )


def _unusual(name: str, context: _Context) -> str:
    norm = context.norms.get(name)
    if norm is None:
        return ""
    return NormFacts.of(norm).beside(context.usual)
