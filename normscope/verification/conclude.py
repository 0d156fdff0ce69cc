"""What was seen of branches -> an independent name for each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normscope.placement.lists import stack_path
from normscope.placement.sites import PlacedBranch
from normscope.placement.vocabulary import Placement, Site, name_of_sites
from normscope.verification.observe import ObservedBranch, Trunk
from normscope.verification.observe_model import SeenBranch
from normscope.verification.responses import Response

EXACT = 1e-4
"""What a zeroed branch may leave beside the skip, relative to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The name of one branch of the copy, from the numbers alone."""

    placed: PlacedBranch
    observed: ObservedBranch
    placement: Placement
    sites: frozenset[Site]
    trunk_open: bool
    """Whether a norm behind the sum could as well be the final one."""


def conclude(seen: Sequence[SeenBranch]) -> tuple[Conclusion, ...]:
    """Name every branch that was observed; the last sum of a stack follows its other blocks."""
    siblings = _last_sums(seen)
    return tuple(
        _conclusion(branch, branch.seen, siblings)
        for branch in seen
        if isinstance(branch.seen, ObservedBranch)
    )


def _last_sums(seen: Sequence[SeenBranch]) -> Mapping[str, Counter[Trunk]]:
    """Count, for each stack, how the last sums of its blocks end.

    A block of no list has no siblings.
    """
    last: dict[tuple[str, int], SeenBranch] = {}
    for branch in seen:
        if isinstance(branch.seen, ObservedBranch) and branch.block.key.listed:
            last[branch.block.key.path, branch.block.key.run] = branch
    counts: dict[str, Counter[Trunk]] = {}
    for branch in last.values():
        if isinstance(branch.seen, ObservedBranch):
            path = stack_path(branch.block.key.path)
            counts.setdefault(path, Counter())[branch.seen.trunk] += 1
    return counts


def _conclusion(
    branch: SeenBranch, seen: ObservedBranch, siblings: Mapping[str, Counter[Trunk]]
) -> Conclusion:
    key = branch.block.key
    counts = siblings.get(stack_path(key.path), Counter()) if key.listed else Counter[Trunk]()
    decided = counts[Trunk.NORMALIZED] + counts[Trunk.FREE]
    by_siblings = counts[Trunk.NORMALIZED] > counts[Trunk.FREE]
    trunk = seen.trunk is Trunk.NORMALIZED or (seen.trunk is Trunk.ENDS and by_siblings)
    sites = {
        Site.BRANCH_INPUT: seen.entries.get(Response.UNCHANGED, 0) > 0,
        Site.BRANCH_OUTPUT: seen.output or seen.partly,
        Site.TRUNK: trunk,
    }
    found = frozenset(site for site, holds in sites.items() if holds)
    return Conclusion(
        placed=branch.placed,
        observed=seen,
        placement=_name(seen, found),
        sites=found,
        trunk_open=seen.trunk is Trunk.ENDS and not decided,
    )


def _name(seen: ObservedBranch, sites: frozenset[Site]) -> Placement:
    if seen.remainder > EXACT or seen.entries.get(Response.UNCLEAR):
        return Placement.UNKNOWN
    normalized = seen.skip is Response.UNCHANGED and not seen.projected
    if normalized or seen.partly or (Site.BRANCH_INPUT in sites and _some_read_x(seen)):
        return Placement.OTHER
    return name_of_sites(sites)


def _some_read_x(seen: ObservedBranch) -> bool:
    whole = seen.whole is Response.UNCHANGED or seen.added_to > 0
    return set(seen.entries) != {Response.UNCHANGED} or not whole
