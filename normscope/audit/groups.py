"""AuditReport -> what its targets share: one group for what is said alike of many."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from normscope.audit.findings import Finding, Severity
from normscope.audit.report import AuditedTarget, AuditReport
from normscope.errors import FailureKind

_LONGEST_NUMBER = 10
"""Digits beyond which a part of a name is no number of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """The same finding in one target or in many, at one place or at several of each."""

    code: str
    severity: Severity
    message: str
    places: Mapping[str, tuple[Finding, ...]]
    """Place, with `*` for the numbers of blocks and "" for the model -> what was found there, in
    the order of the targets. Where there are several places, all targets have all of them, each
    in the same blocks."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, place by place."""
        return tuple(finding for members in self.places.values() for finding in members)

    @property
    def targets(self) -> tuple[str, ...]:
        """Each target once."""
        return tuple(dict.fromkeys(finding.target for finding in self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Targets that failed in one way and have one hint."""

    kind: FailureKind
    hint: str
    targets: tuple[AuditedTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedGroup:
    """Rules that were not checked for one reason, in as many targets."""

    codes: tuple[str, ...]
    """Sorted."""
    reason: str
    targets: int


def grouped_findings(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """Return the groups: the worst first, then by code, then those of most targets."""
    alike: dict[tuple[str, Severity, str, str], list[Finding]] = {}
    for found in findings:
        alike.setdefault((found.code, found.severity, found.gist, found.where), []).append(found)
    joined: dict[tuple[object, ...], dict[str, tuple[Finding, ...]]] = {}
    for (code, severity, gist, where), members in alike.items():
        key = (code, severity, gist, *_shared(members))
        joined.setdefault(key, {})[where] = tuple(members)
    groups = [_group(places) for places in joined.values()]
    return tuple(sorted(groups, key=_order))


def _shared(members: Sequence[Finding]) -> tuple[object, ...]:
    """Return what several places must have in common to be said together.

    That is their targets, what is so in each of them alone, and, where the targets differ in their
    blocks, those.
    """
    alike = same_blocks(members) is not None
    return tuple(
        (finding.family, finding.target, finding.detail, () if alike else _blocks(finding))
        for finding in members
    )


def _blocks(finding: Finding) -> tuple[tuple[int, ...], int]:
    return block_numbers(finding), len(finding.places)


def _group(places: Mapping[str, tuple[Finding, ...]]) -> FindingGroup:
    members = next(iter(places.values()))
    first = members[0]
    same = len({finding.detail for finding in members}) == 1
    return FindingGroup(
        code=first.code,
        severity=first.severity,
        message=first.message if same else f"{first.message} in the first target",
        places=places,
    )


def _order(group: FindingGroup) -> tuple[int, str, int]:
    return (-group.severity.rank, group.code, -len(group.targets))


def grouped_failures(report: AuditReport) -> tuple[FailureGroup, ...]:
    """Return the targets without an answer, in order of the first of each group."""
    alike: dict[tuple[FailureKind, str], list[AuditedTarget]] = {}
    for target in report.targets:
        if target.failure is not None:
            alike.setdefault((target.failure.kind, target.failure.hint), []).append(target)
    return tuple(
        FailureGroup(kind=kind, hint=hint, targets=tuple(targets))
        for (kind, hint), targets in alike.items()
    )


def grouped_unchecked(report: AuditReport) -> tuple[UncheckedGroup, ...]:
    """Return the rules that were not checked, by reason, in order of first appearance."""
    counts: dict[tuple[str, str], int] = {}
    for target in report.targets:
        for one in target.unchecked:
            key = (one.reason, one.code)
            counts[key] = counts.get(key, 0) + 1
    alike: dict[tuple[str, int], list[str]] = {}
    for (reason, code), count in counts.items():
        alike.setdefault((reason, count), []).append(code)
    return tuple(
        UncheckedGroup(codes=tuple(sorted(codes)), reason=reason, targets=count)
        for (reason, count), codes in alike.items()
    )


def same_blocks(findings: Iterable[Finding]) -> tuple[int, ...] | None:
    """Return the blocks that all findings name, as `block_numbers`; None where they differ."""
    seen = set(map(_blocks, findings))
    return seen.pop()[0] if len(seen) == 1 else None


def block_numbers(finding: Finding) -> tuple[int, ...]:
    """Return the numbers of the blocks that `*` stands for; none where that cannot be told."""
    before, star, after = finding.where.partition("*")
    if not star:
        return ()
    numbers = [
        place[len(before) : len(place) - len(after)]
        for place in finding.places
        if place.startswith(before) and place.endswith(after)
    ]
    told = len(numbers) == len(finding.places) and all(
        number.isascii() and number.isdecimal() and len(number) < _LONGEST_NUMBER
        for number in numbers
    )
    return tuple(int(number) for number in numbers) if told else ()
