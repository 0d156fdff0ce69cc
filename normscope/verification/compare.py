"""Reported branches + conclusions about the copy's -> each verdict beside the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from normscope.inspection import (
    BlockReport,
    BranchReport,
    NormReport,
    NotChecked,
    Placement,
    Site,
    VerifiedBranch,
)
from normscope.placement.lists import stack_path
from normscope.placement.vocabulary import name_of_sites
from normscope.verification.conclude import Conclusion
from normscope.verification.consequences import consequences, shift_predicted
from normscope.verification.norm_checks import is_over_one_element
from normscope.verification.responses import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyBlock:
    """One run of one block of the copy, with what was concluded of each branch, or why not."""

    path: str
    kinds: tuple[str, ...]
    facts: tuple[object, ...]
    """Placement and sites that the analysis reads off the copy: only to find a twin by."""
    branches: tuple[Conclusion | str, ...]


def compare_branches(
    blocks: Sequence[BlockReport], norms: Sequence[NormReport], copy: Sequence[CopyBlock]
) -> Iterator[VerifiedBranch | NotChecked]:
    """Yield every reported branch beside the branch of the copy that is like it."""
    kinds = {norm.name: norm.kind for norm in norms}
    single = {norm.name for norm in norms if is_over_one_element(norm)}
    for block in blocks:
        twin = _twin(block, copy)
        for place, branch in enumerate(block.branches):
            what = f"{block.path}, branch {place} ({branch.kind.value})"
            if twin is None:
                yield NotChecked(what=what, reason="no block of the copy is like it")
            elif not single.isdisjoint(name for names in branch.norms.values() for name in names):
                yield NotChecked(what=what, reason="norm over one element, which tells nothing")
            else:
                yield _compared(what, block, place, branch, twin, kinds)


def _twin(block: BlockReport, copy: Sequence[CopyBlock]) -> CopyBlock | None:
    """Return the copy's own block of this path, else one of its stack with such branches."""
    kinds = tuple(branch.kind.value for branch in block.branches)
    facts = facts_of(block)
    alike = [
        other
        for other in copy
        if other.kinds == kinds and stack_path(other.path) == stack_path(block.path)
    ]
    return min(
        alike,
        key=lambda other: (
            other.facts != facts,
            other.path != block.path,
            # The first block may read zeros where the others read what it made of them.
            any(isinstance(branch, str) for branch in other.branches),
        ),
        default=None,
    )


def facts_of(block: BlockReport) -> tuple[object, ...]:
    """Return what tells blocks of a stack apart."""
    return tuple((branch.placement, frozenset(branch.sites)) for branch in block.branches)


def _compared(
    what: str,
    block: BlockReport,
    place: int,
    branch: BranchReport,
    twin: CopyBlock,
    kinds: Mapping[str, str],
) -> VerifiedBranch | NotChecked:
    conclusion = twin.branches[place]
    if isinstance(conclusion, str):
        return NotChecked(what=what, reason=conclusion)
    shown = consequences(branch, kinds, conclusion.observed, trunk=Site.TRUNK in conclusion.sites)
    if Placement.UNKNOWN in {branch.placement, conclusion.placement}:
        which = "the report" if branch.placement is Placement.UNKNOWN else "what was seen"
        seen = "; ".join(f"{one.intervention}: {one.observed}" for one in shown)
        return NotChecked(what=what, reason=f"{which} does not decide: {seen}")
    reported = frozenset(branch.sites) - {Site.INSIDE_BRANCH}
    observed = conclusion.sites
    name = conclusion.placement
    if conclusion.trunk_open and name is not Placement.OTHER:
        # A lone block: its own norm and a final one do the same.
        observed = (observed - {Site.TRUNK}) | (reported & {Site.TRUNK})
        name = name_of_sites(observed)
    named = name is branch.placement or (
        branch.placement is Placement.OTHER and observed == reported
    )
    return VerifiedBranch(
        block=block.path,
        branch=place,
        kind=branch.kind,
        reported=branch.placement,
        observed=name,
        sites=tuple(site for site in Site if site in observed),
        agrees=named and _centred_as_reported(branch, conclusion, kinds),
        seen_in=twin.path,
        consequences=shown,
    )


def _centred_as_reported(
    branch: BranchReport, conclusion: Conclusion, kinds: Mapping[str, str]
) -> bool:
    """Tell whether a shift of x does what the kind of the one norm it goes through says."""
    centred = conclusion.observed.centred
    expected = shift_predicted(branch, kinds)
    if expected is None or centred is None or centred is Response.UNCLEAR:
        return True
    return (centred is Response.UNCHANGED) is (expected is Response.UNCHANGED)
