from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from golden.audit_reports import clean, everything, hostile, large, odd_blocks, typed
from normscope.audit.findings import Severity
from normscope.audit.report import AuditReport
from normscope.render.audit_junit import render_audit_junit

REPORTS = {"everything": everything(), "hostile": hostile(), "typed": typed(), "large": large(50)}


def parsed(report: AuditReport, fail_on: Severity = Severity.WARNING) -> ElementTree.Element:
    return ElementTree.fromstring(render_audit_junit(report, fail_on=fail_on))


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_the_counts_are_those_of_the_cases(report: AuditReport) -> None:
    root = parsed(report)
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        outcomes = Counter(child.tag for case in cases for child in case)
        assert element.get("tests") == str(len(cases))
        assert element.get("failures") == str(outcomes["failure"])
        assert element.get("errors") == str(outcomes["error"])
        assert element.get("skipped") == str(outcomes["skipped"])


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_each_case_is_there_once_and_ends_in_one_way(report: AuditReport) -> None:
    cases = list(parsed(report).iter("testcase"))
    names = Counter((case.get("classname"), case.get("name")) for case in cases)
    assert set(names.values()) == {1}
    assert all(len(case) <= 1 for case in cases)


def outcome(report: AuditReport, name: str, fail_on: Severity = Severity.WARNING) -> str | None:
    (case,) = (
        case for case in parsed(report, fail_on).iter("testcase") if case.get("name") == name
    )
    return case[0].tag if len(case) else None


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("NS106 type:roberta", "failure"),
        ("NS106 type:bert", "system-out"),
        ("NS105 checkpoints/large", "system-out"),
        ("NS101 type:llama", None),
        ("NS301 type:llama", "skipped"),
        ("inspection checkpoints/broken", "error"),
    ],
)
def test_how_a_case_ends(name: str, ended: str | None) -> None:
    assert outcome(everything(), name) == ended


def test_the_fail_level_decides_what_fails() -> None:
    assert outcome(everything(), "NS101 checkpoints/small", Severity.ERROR) == "system-out"
    assert outcome(everything(), "NS105 checkpoints/large", Severity.NOTE) == "failure"


def test_a_rule_that_was_not_selected_but_found_something_has_a_case() -> None:
    target = clean().targets[0]
    drift = replace(odd_blocks("type:bert", (1,)), code="NS501", severity=Severity.ERROR)
    report = replace(clean(), targets=(replace(target, findings=(drift,)),))
    assert outcome(report, "NS501 type:bert") == "failure"


def test_several_findings_of_a_rule_are_one_failure_with_all_of_them() -> None:
    target = large(1, 3)
    (case,) = (case for case in parsed(target).iter("testcase") if len(case) and case[0].text)
    assert case[0].get("message") == "3 findings"
    assert len(case[0].text.splitlines()) == 3


def test_targets_without_a_family_are_suites_of_their_own() -> None:
    (suite,) = parsed(typed()).iter("testsuite")
    assert suite.get("name") == "type:bert"
    assert {case.get("file") for case in suite} == {None}


def test_a_case_names_the_line_of_the_policy() -> None:
    case = parsed(everything()).find(".//testcase")
    assert (case.get("file"), case.get("line")) == ("ci/normscope.toml", "4")


def test_an_interrupted_run_has_an_error() -> None:
    report = replace(clean(), interrupted=True)
    assert outcome(report, "every target is answered") == "error"
