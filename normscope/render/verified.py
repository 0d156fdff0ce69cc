"""Verification -> what a reader is told of it, before it is set as a table or as markdown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from normscope.inspection import (
    Consequence,
    NormCheck,
    NotChecked,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)
from normscope.render.names import siblings_as_one
from normscope.render.visible import visible

Row = tuple[str, str, str]

NO_COPY = "none"
ROWS_HEADER: Row = ("intervention", "predicted", "observed")
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Verdicts that the same numbers contradict."""

    where: tuple[str, ...]
    verdict: str
    rows: tuple[Row, ...]
    """What was done, what the report predicts of it, what was observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedSummary:
    """All that the short views say of one verification."""

    heading: str
    counts: tuple[str, ...]
    not_checked: tuple[str, ...]
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """The branches, or the norms, that were checked, and those that were not."""

    one: str
    many: str
    checked: Sequence[VerifiedBranch | VerifiedNorm]
    unchecked: Sequence[NotChecked]

    def counted(self, count: int) -> str:
        """Return `1 branch`, `2 branches`."""
        return f"{count} {self.one if count == 1 else self.many}"

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Return what was not checked, by the reason."""
        found: dict[str, list[str]] = {}
        for item in self.unchecked:
            found.setdefault(visible(item.reason), []).append(visible(item.what))
        return found


def summarize_verification(found: Verification) -> VerifiedSummary:
    """Gather what a reader is told of one verification."""
    tallies = _tallies(found)
    return VerifiedSummary(
        heading=_heading(found.copy),
        counts=tuple(map(_count, tallies)),
        not_checked=tuple(text for tally in tallies for text in _not_checked(tally)),
        disagreements=(*_of_branches(found.branches), *_of_norms(found.norms)),
    )


def _tallies(found: Verification) -> tuple[_Tally, _Tally]:
    return (
        _Tally(
            one="branch",
            many="branches",
            checked=found.branches,
            unchecked=found.branches_not_checked,
        ),
        _Tally(one="norm", many="norms", checked=found.norms, unchecked=found.norms_not_checked),
    )


def agreement(found: Verification) -> str:
    """Return in few words how many verdicts agree: `49 of 49`."""
    checked: list[VerifiedBranch | VerifiedNorm] = [*found.branches, *found.norms]
    total = len(checked) + len(found.branches_not_checked) + len(found.norms_not_checked)
    wrong = sum(not item.agrees for item in checked)
    told = f"{len(checked) - wrong} of {total}"
    return f"{told}, {_verb(wrong)}" if wrong else told


def disagreeing(found: Verification) -> str:
    """Return a clause on what disagrees: `2 branches and 1 norm disagree with their numbers`."""
    wrong = [(tally, sum(not item.agrees for item in tally.checked)) for tally in _tallies(found)]
    told = [tally.counted(count) for tally, count in wrong if count]
    alone = sum(count for _, count in wrong) == 1
    verb = "disagrees with its" if alone else "disagree with their"
    return f"{' and '.join(told)} {verb} numbers" if told else ""


def _heading(copy: str) -> str:
    if copy == NO_COPY:
        return "verified norm by norm; no copy of the model runs that would show its branches"
    return f"verified in a copy with random weights: {visible(copy)}"


def _count(tally: _Tally) -> str:
    total = len(tally.checked) + len(tally.unchecked)
    if not total:
        return f"no {tally.one}"
    if not tally.checked:
        why = f": {next(iter(tally.reasons))}" if len(tally.reasons) == 1 else ""
        return f"{tally.counted(total)}, not checked{why}"
    wrong = sum(not item.agrees for item in tally.checked)
    agree = len(tally.checked) - wrong
    told = [f"{agree} agrees" if agree == 1 else f"{agree} agree"] if agree else []
    if agree == total > 1:
        told = ["all agree"]
    return f"{tally.counted(total)}: {', '.join([*told, *([_verb(wrong)] if wrong else [])])}"


def _verb(count: int) -> str:
    return f"{count} disagrees" if count == 1 else f"{count} disagree"


def _not_checked(tally: _Tally) -> Iterator[str]:
    if not tally.checked and len(tally.reasons) == 1:
        return  # the count says it
    for reason, names in tally.reasons.items():
        shown = siblings_as_one(dict.fromkeys(names))
        more = len(shown) - _MOST_NAMES
        listed = ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        yield f"{tally.counted(len(names))} not checked: {reason}: {listed}"


def _of_branches(branches: Iterable[VerifiedBranch]) -> Iterator[Disagreement]:
    alike: dict[tuple[str, tuple[Consequence, ...]], list[str]] = {}
    for item in branches:
        if not item.agrees:
            what = f"branch {item.branch} ({item.kind.value})"
            told = f"{what} is reported as {item.reported.value}, {_seen(item)}"
            block = visible(item.block) or "the module itself"
            alike.setdefault((told, item.consequences), []).append(block)
    for (told, rows), names in alike.items():
        yield Disagreement(
            where=siblings_as_one(dict.fromkeys(names)),
            verdict=told,
            rows=tuple((row.intervention, row.predicted, row.observed) for row in rows),
        )


def _seen(item: VerifiedBranch) -> str:
    if item.observed is item.reported:
        return "and the copy does what that name says, but not as its norm's kind says"
    return f"the copy shows {item.observed.value}"


def _of_norms(norms: Iterable[VerifiedNorm]) -> Iterator[Disagreement]:
    alike: dict[tuple[NormCheck, ...], list[str]] = {}
    for norm in norms:
        wrong = tuple(check for check in norm.checks if not check.agrees)
        if wrong:
            alike.setdefault(wrong, []).append(visible(norm.name))
    for checks, names in alike.items():
        yield Disagreement(
            where=siblings_as_one(dict.fromkeys(names)),
            verdict="a probe of the norm shows another formula",
            rows=tuple(
                (check.fact.replace("_", " "), visible(check.reported), visible(check.observed))
                for check in checks
            ),
        )
