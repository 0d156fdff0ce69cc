from dataclasses import replace

import pytest

from golden.audit_reports import alike, clean, everything, large, typed
from normscope.audit.findings import Severity
from normscope.render.audit_github import render_audit_github


def test_a_clean_run_is_a_line_of_the_log() -> None:
    report = replace(
        clean(), targets=tuple(replace(target, unchecked=()) for target in clean().targets)
    )
    assert render_audit_github(report) == (
        "normscope audit of 2 targets of 1 family: no findings; 2 targets clean\n"
    )


@pytest.mark.parametrize("severity", list(Severity))
def test_ten_of_a_level_and_the_last_one_counts_the_rest(severity: Severity) -> None:
    report = large(3)
    targets = tuple(
        replace(target, findings=tuple(replace(one, severity=severity) for one in target.findings))
        for target in report.targets
    )
    level = "notice" if severity is Severity.NOTE else severity.value
    text = render_audit_github(replace(report, targets=targets))
    lines = [line for line in text.splitlines() if line.startswith(f"::{level} ")]
    assert len(lines) == 10
    assert lines[-1].startswith(f"::{level} title=+6 more::")


def test_ten_are_all_shown() -> None:
    text = render_audit_github(large(2))
    assert sum(line.startswith("::error ") for line in text.splitlines()) == 10
    assert "more::" not in text


def test_what_concerns_most_targets_comes_first() -> None:
    many = alike(3)
    one = large(1, 1)
    first = render_audit_github(replace(one, targets=(*one.targets, *many.targets)))
    errors = [line for line in first.splitlines() if line.startswith("::error ")]
    assert "checkpoints/00002" in errors[0]
    assert len(errors) == 2


def test_a_finding_of_many_targets_comes_before_a_failure_of_one() -> None:
    errors = [line for line in render_audit_github(everything()).splitlines() if "::error " in line]
    assert ["NS106" in line for line in errors] == [True, False]


def test_a_long_list_of_targets_is_counted() -> None:
    assert ", and 980 more" in render_audit_github(alike())


def test_a_target_that_was_typed_has_no_line() -> None:
    assert "::warning title=NS101 " in render_audit_github(typed())


def test_the_characters_of_commands_are_escaped() -> None:
    report = everything()
    first = report.targets[1]
    place = replace(first.place, file="a,b:c%/d.toml")
    findings = tuple(replace(one, message="50%, a: b") for one in first.findings)
    text = render_audit_github(
        replace(report, targets=(replace(first, place=place, findings=findings),))
    )
    assert "::error file=a%2Cb%3Ac%25/d.toml,line=4,title=NS106 " in text
    assert "50%25, a: b%0Ain type:roberta\n" in text


def test_what_was_not_checked_is_no_annotation() -> None:
    assert render_audit_github(clean()).splitlines()[1:] == [
        "not checked: NS301 in 2 targets (no weights are at hand)"
    ]


def test_an_interrupted_run_is_an_error() -> None:
    assert "\n::error title=interrupted::" in render_audit_github(
        replace(clean(), interrupted=True)
    )
