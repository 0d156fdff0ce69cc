"""Reported branch + what was seen of it -> each intervention, what it must do and what it did."""

from collections.abc import Iterator, Mapping

from normscope.inspection import BranchReport, Consequence, Placement, Site
from normscope.norms import NormKind
from normscope.verification.conclude import EXACT
from normscope.verification.observe import ObservedBranch, Trunk
from normscope.verification.responses import Response

NOT_PREDICTED = "not predicted"

_UNCENTRED = frozenset({NormKind.RMS.value, NormKind.L2.value})


def consequences(
    branch: BranchReport, kinds: Mapping[str, str], seen: ObservedBranch, *, trunk: bool
) -> tuple[Consequence, ...]:
    """Return the interventions in one branch; `kinds` are those of the reported norms.

    `trunk` tells whether a norm on the trunk was concluded from what lies behind the sum.
    """
    return (
        _growth(branch, seen),
        *_shift(branch, kinds, seen),
        _growth_within(branch, seen),
        *_growth_of_skip(branch, seen),
        _growth_of_sum(branch, seen, trunk=trunk),
        _nothing(seen),
    )


def shift_predicted(branch: BranchReport, kinds: Mapping[str, str]) -> Response | None:
    """Return how what the one norm on the branch's input gives answers to a shift of x.

    None where it is no one norm of a known kind.
    """
    names = branch.norms.get(Site.BRANCH_INPUT, ())
    if len(names) != 1 or names[0] not in kinds:
        return None
    return Response.CHANGED if kinds[names[0]] in _UNCENTRED else Response.UNCHANGED


def _growth(branch: BranchReport, seen: ObservedBranch) -> Consequence:
    still, total = seen.entries.get(Response.UNCHANGED, 0), sum(seen.entries.values())
    unclear = seen.entries.get(Response.UNCLEAR, 0)
    normed = Site.BRANCH_INPUT in branch.sites
    return Consequence(
        intervention="3x for x",
        predicted=f"the branch's inputs {'stay' if normed else 'grow'}",
        observed=f"{still - seen.added_to} of {total} inputs of its products stay"
        + (f", {seen.added_to} more for x with what is added to it" if seen.added_to else "")
        + (f", {unclear} unclear" if unclear else "")
        + f"; its output is {seen.whole.value}",
    )


def _shift(
    branch: BranchReport, kinds: Mapping[str, str], seen: ObservedBranch
) -> Iterator[Consequence]:
    if seen.centred is None:
        return
    expected = shift_predicted(branch, kinds)
    words = {Response.UNCHANGED: "those inputs stay", Response.CHANGED: "those inputs change"}
    yield Consequence(
        intervention="x + c for x",
        predicted=NOT_PREDICTED if expected is None else words[expected],
        observed=words.get(seen.centred, f"those inputs are {seen.centred.value}"),
    )


def _growth_within(branch: BranchReport, seen: ObservedBranch) -> Consequence:
    words = {True: "its output stays", False: "its output grows"}
    normed = Site.BRANCH_OUTPUT in branch.sites
    open_to_it = normed and branch.placement is Placement.OTHER
    return Consequence(
        intervention="3y for its y",
        predicted=NOT_PREDICTED if open_to_it else words[normed],
        observed=words[seen.output] + (", not for a part of y" if seen.partly else ""),
    )


def _growth_of_skip(branch: BranchReport, seen: ObservedBranch) -> Iterator[Consequence]:
    if seen.skip is Response.IN_STEP:
        return
    open_to_it = branch.placement is Placement.OTHER or seen.projected
    yield Consequence(
        intervention="3x on the skip",
        predicted=NOT_PREDICTED if open_to_it else "the skip is 3x",
        observed=f"the skip is {seen.skip.value}",
    )


def _growth_of_sum(branch: BranchReport, seen: ObservedBranch, *, trunk: bool) -> Consequence:
    ends = ""
    if seen.trunk is Trunk.ENDS:
        ends = ", as behind the other blocks" if trunk else ", as before a final norm"
    words = {True: "all that follows stays", False: "what follows changes"}
    return Consequence(
        intervention="3x for the sum",
        predicted=words[Site.TRUNK in branch.sites],
        observed=words[seen.trunk is not Trunk.FREE] + ends,
    )


def _nothing(seen: ObservedBranch) -> Consequence:
    exact = seen.remainder <= EXACT
    return Consequence(
        intervention="0 for the branch",
        predicted="the sum is the skip",
        observed="the sum is the skip" if exact else f"the sum is off by {seen.remainder:.1g}",
    )
