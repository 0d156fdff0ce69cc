from dataclasses import replace

import pytest

from golden.audit_reports import alike, audited, clean, eps_finding, everything, idle, odd_blocks
from normscope.audit.findings import Finding, Severity
from normscope.audit.groups import (
    block_numbers,
    grouped_failures,
    grouped_findings,
    grouped_unchecked,
)
from normscope.audit.tally import tally_of


def test_the_same_finding_of_many_targets_is_one_group() -> None:
    (group,) = grouped_findings(alike(12).findings())
    assert len(group.targets) == 12
    assert sum(len(finding.places) for finding in group.findings) == 12 * 12
    assert (group.code, group.severity) == ("NS106", Severity.ERROR)


@pytest.mark.parametrize(
    "other", [{"where": "x"}, {"message": "x"}, {"severity": Severity.NOTE}, {"code": "NS101"}]
)
def test_what_differs_is_a_group_of_its_own(other: dict[str, object]) -> None:
    finding = eps_finding("a")
    assert len(grouped_findings([finding, replace(finding, target="b", **other)])) == 2


def test_one_thing_at_several_places_of_the_same_targets_is_one_group() -> None:
    findings = [eps_finding(name) for name in "ab"]
    elsewhere = [replace(finding, where="norm", places=("norm",)) for finding in findings]
    (group,) = grouped_findings([*findings, *elsewhere])
    assert tuple(group.places) == (findings[0].where, "norm")
    assert group.targets == ("a", "b")
    apart = grouped_findings([*findings, elsewhere[0]])
    assert [len(group.places) for group in apart] == [1, 1]


def with_detail(target: str, detail: str, where: str = "norm") -> Finding:
    finding = eps_finding(target)
    message = f"channels that are off: {detail}"
    return replace(finding, where=where, places=(where,), message=message, detail=detail)


def test_what_is_so_in_one_target_alone_parts_no_group() -> None:
    (group,) = grouped_findings([with_detail("a", "1 of 8"), with_detail("b", "3 of 8")])
    assert group.targets == ("a", "b")
    assert group.message == "channels that are off: 1 of 8 in the first target"
    (group,) = grouped_findings([with_detail(name, "1 of 8") for name in "ab"])
    assert group.message == "channels that are off: 1 of 8"


def test_what_is_so_at_one_place_alone_keeps_places_apart() -> None:
    first = [with_detail(name, detail) for name, detail in (("a", "1 of 8"), ("b", "3 of 8"))]
    alike = [with_detail(one.target, one.detail, "head") for one in first]
    assert [list(group.places) for group in grouped_findings([*first, *alike])] == [
        ["norm", "head"]
    ]
    other = [with_detail(one.target, "7 of 8", "head") for one in first]
    assert len(grouped_findings([*first, *other])) == 2


def test_places_in_other_blocks_of_each_target_stay_apart() -> None:
    findings = [odd_blocks("a", (1,)), odd_blocks("b", (2,))]
    elsewhere = [replace(finding, where="norm", places=("norm",)) for finding in findings]
    assert len(grouped_findings([*findings, *elsewhere])) == 2


def test_the_worst_comes_first_then_the_code_then_the_most_frequent() -> None:
    rare = odd_blocks("a", (1,))
    frequent = [replace(odd_blocks(name, (1,)), message="other") for name in "ab"]
    groups = grouped_findings([idle("a"), rare, *frequent, eps_finding("a")])
    assert [group.code for group in groups] == ["NS106", "NS101", "NS101", "NS105"]
    assert groups[1].message == "other"


def test_failures_of_one_kind_and_hint_are_one_group() -> None:
    report = everything()
    broken = report.failed[0]
    second = replace(broken, target="other")
    other = replace(broken, target="third", failure=replace(broken.failure, hint="else"))
    groups = grouped_failures(replace(report, targets=(broken, second, other)))
    assert [[one.target for one in group.targets] for group in groups] == [
        ["checkpoints/broken", "other"],
        ["third"],
    ]


def test_unchecked_rules_are_said_once_a_reason() -> None:
    targets = [
        replace(target, unchecked=(replace(target.unchecked[0], code="NS302"), *target.unchecked))
        for target in clean().targets
    ]
    (group,) = grouped_unchecked(replace(clean(), targets=tuple(targets)))
    assert (group.codes, group.targets) == (("NS301", "NS302"), 2)


@pytest.mark.parametrize(
    ("where", "places", "numbers"),
    [
        ("layers.*", ("layers.0", "layers.12"), (0, 12)),
        ("layers.*.norm", ("layers.7.norm",), (7,)),
        ("*.norm", ("3.norm",), (3,)),
        ("norm", ("norm",), ()),
        ("layers.*", ("layers.x", "layers.1"), ()),
        ("layers.*", ("other.1",), ()),
        ("layers.*", ("another.1",), ()),
        ("layers.*.a", ("layers.1.b",), ()),
        ("layers.*", ("layers.\u0663",), ()),
        ("a*a", ("a",), ()),
        ("layers.*", ("layers." + "9" * 5000,), ()),
    ],
)
def test_the_numbers_of_blocks_are_read_from_the_places(
    where: str, places: tuple[str, ...], numbers: tuple[int, ...]
) -> None:
    assert block_numbers(replace(eps_finding("a"), where=where, places=places)) == numbers


def test_the_tally_counts_what_is_new() -> None:
    tally = tally_of(everything())
    assert (tally.targets, tally.clean, tally.found, tally.failed) == (7, 2, 4, 1)
    assert tally.families == 2
    assert (tally.known, tally.gone, tally.findings) == (1, 1, 5)
    assert dict(tally.severities) == {Severity.NOTE: 1, Severity.WARNING: 2, Severity.ERROR: 2}
    assert [(rule.code, rule.findings, rule.places) for rule in tally.rules] == [
        ("NS101", 2, 5),
        ("NS105", 1, 1),
        ("NS106", 2, 24),
    ]


def test_a_target_with_known_findings_alone_is_clean() -> None:
    target = audited("a", "f", 1, eps_finding("a", known=True))
    assert tally_of(replace(clean(), targets=(target,))).clean == 1


def test_a_rule_is_as_bad_as_its_worst_finding() -> None:
    finding = odd_blocks("a", (1,))
    target = audited("a", "f", 1, finding, replace(finding, severity=Severity.ERROR, where="x"))
    (rule,) = tally_of(replace(clean(), targets=(target,))).rules
    assert (rule.worst, rule.targets) == (Severity.ERROR, 1)
