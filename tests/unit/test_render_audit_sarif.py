"""What the schema of SARIF asks for, by hand, and what its text asks for beyond that."""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from golden.audit_reports import (
    POLICY,
    clean,
    eps_finding,
    everything,
    hostile,
    large,
    typed,
)
from normscope.audit.findings import fingerprint_of
from normscope.audit.policy import Place
from normscope.audit.report import AuditReport
from normscope.audit.rules import rule_of
from normscope.render.audit_sarif import render_audit_sarif

REPORTS = {
    "everything": everything(),
    "clean": clean(),
    "hostile": hostile(),
    "typed": typed(),
    "large": large(20),
}


def run_of(report: AuditReport) -> Any:
    document = json.loads(render_audit_sarif(report))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_result_refers_to_its_rule(report: AuditReport) -> None:
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for told in run["invocations"][0]["toolExecutionNotifications"]:
        rule = told.get("associatedRule")
        assert rule is None or rules[rule["index"]]["id"] == rule["id"]


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_location_is_one_that_the_standard_knows(report: AuditReport) -> None:
    for result in run_of(report)["results"]:
        for location in result["locations"]:
            physical = location.get("physicalLocation")
            if physical is not None:
                assert re.fullmatch(r"[\w\-.~/%]+", physical["artifactLocation"]["uri"], re.ASCII)
                assert physical.get("region", {"startLine": 1})["startLine"] >= 1
            logical = location.get("logicalLocations", [])
            assert len({json.dumps(one) for one in logical}) == len(logical)
            assert {one["kind"] for one in logical} <= {"module"}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_rule_says_what_it_is_and_how_to_mend_it(report: AuditReport) -> None:
    for rule in run_of(report)["tool"]["driver"]["rules"]:
        known = rule_of(rule["id"])
        if known is None:
            assert set(rule) == {"id"}
            continue
        assert rule["shortDescription"]["text"] == known.title
        assert known.mend.replace("{", "{{").replace("}", "}}") in rule["help"]["text"]
        assert "**How to mend it.**" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] == known.severity.value
        assert "helpUri" not in rule


def test_a_result_stands_at_the_line_that_names_its_target() -> None:
    result = run_of(everything())["results"][1]
    assert result["message"]["text"] == (
        "type:roberta, encoder.layer.*.output.LayerNorm, blocks 0-11: "
        "eps is 1e-05, and the policy expects 1e-12"
    )
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": POLICY, "uriBaseId": "SRCROOT"},
        "region": {"startLine": 4},
    }
    names = [one["fullyQualifiedName"] for one in location["logicalLocations"]]
    assert names == list(eps_finding("x").places)
    assert "SRCROOT" in run_of(everything())["originalUriBaseIds"]


def test_a_fingerprint_is_the_findings_own() -> None:
    fingerprints = [one["partialFingerprints"] for one in run_of(everything())["results"]]
    assert fingerprints[1] == {"normscope/v1": eps_finding("type:roberta").fingerprint}
    assert fingerprints[-1] == {"normscope/v1": fingerprint_of(everything().gone[0].identity)}


def test_the_baseline_is_told() -> None:
    results = run_of(everything())["results"]
    assert [result["baselineState"] for result in results] == [
        "unchanged",
        *["new"] * 5,
        "absent",
    ]
    assert (results[-1]["kind"], results[-1]["level"]) == ("pass", "none")
    assert all("kind" not in result for result in results[:-1])


def test_without_a_baseline_nothing_is_new_or_old() -> None:
    results = run_of(replace(everything(), baseline=None, gone=()))["results"]
    assert all("baselineState" not in result for result in results)


def test_failures_make_the_run_unsuccessful() -> None:
    (invocation,) = run_of(everything())["invocations"]
    assert invocation["executionSuccessful"] is False
    first = invocation["toolExecutionNotifications"][0]
    assert first["descriptor"] == {"id": "no_config"}
    assert first["level"] == "error"
    assert "there is no config.json" in first["message"]["text"]
    assert run_of(clean())["invocations"][0]["executionSuccessful"] is True
    interrupted = replace(clean(), interrupted=True)
    assert run_of(interrupted)["invocations"][0]["executionSuccessful"] is False


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("normscope.toml", {"uri": "normscope.toml", "uriBaseId": "SRCROOT"}),
        ("./a b/p.toml", {"uri": "a%20b/p.toml", "uriBaseId": "SRCROOT"}),
        ("ab:c/p.toml", {"uri": "ab%3Ac/p.toml", "uriBaseId": "SRCROOT"}),
        ("../p.toml", {"uri": "../p.toml"}),
        ("/ci/p#1.toml", {"uri": "file:///ci/p%231.toml"}),
        ("C:/ci/p.toml", {"uri": "file:///C:/ci/p.toml"}),
        ("\u00e9.toml", {"uri": "%C3%A9.toml", "uriBaseId": "SRCROOT"}),
    ],
)
def test_the_policy_is_a_uri(file: str, expected: dict[str, str]) -> None:
    target = replace(everything().targets[1], place=Place(file=file, line=2))
    (result,) = run_of(replace(clean(), targets=(target,)))["results"]
    found = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert found == expected
    assert unquote(found["uri"]).endswith(file.removeprefix("./"))


def test_a_finding_without_a_line_is_in_the_policy_as_a_whole() -> None:
    target = replace(everything().targets[1], place=None)
    (result,) = run_of(replace(clean(), targets=(target,)))["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": POLICY, "uriBaseId": "SRCROOT"}
    }
    (typed_result,) = run_of(typed())["results"]
    assert "physicalLocation" not in typed_result["locations"][0]


def test_a_message_has_no_placeholder_and_no_link() -> None:
    target = everything().targets[1]
    finding = replace(target.findings[0], message="{0} [a](1) [768]")
    (result,) = run_of(replace(clean(), targets=(replace(target, findings=(finding,)),)))["results"]
    assert result["message"]["text"].endswith("{{0}} [a] (1) [768]")


def test_a_module_is_named_once() -> None:
    target = everything().targets[1]
    finding = replace(target.findings[0], places=("a\0", "a\\x00", "", "b"))
    (result,) = run_of(replace(clean(), targets=(replace(target, findings=(finding,)),)))["results"]
    names = [one["fullyQualifiedName"] for one in result["locations"][0]["logicalLocations"]]
    assert names == ["a\\x00", "b"]
