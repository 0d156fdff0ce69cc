"""AuditReport -> one JSON document, or lines of JSON: keys sorted, no times."""

from normscope.audit.findings import Finding
from normscope.audit.policy import Place
from normscope.audit.report import (
    AuditedTarget,
    AuditReport,
    Failure,
    GoneFinding,
    StackFacts,
    TargetFacts,
)
from normscope.audit.tally import RuleTally, tally_of
from normscope.render.documents import FAILURE_SCHEMA
from normscope.render.plain import Json, dumped

AUDIT_SCHEMA = "normscope.audit/1"
AUDITED_SCHEMA = "normscope.audited/1"
SUMMARY_SCHEMA = "normscope.audit-summary/1"


def render_audit_json(report: AuditReport) -> str:
    """Return the report as one indented document."""
    document: Json = {
        **_whole(report),
        "schema": AUDIT_SCHEMA,
        "targets": [_target(target) for target in report.targets],
    }
    return f"{dumped(document, indent=2)}\n"


def render_audit_json_lines(report: AuditReport) -> str:
    """Return a line for each target, then the summary's line."""
    lines = [render_audited_line(target) for target in report.targets]
    return "".join((*lines, render_audit_summary_line(report)))


def render_audited_line(target: AuditedTarget) -> str:
    """Return one target as one line."""
    return _line(_target(target))


def render_audit_summary_line(report: AuditReport) -> str:
    """Return what is not said of any one target as the last line."""
    return _line({**_whole(report), "schema": SUMMARY_SCHEMA})


def _line(document: Json) -> str:
    return f"{dumped(document, indent=None)}\n"


def _whole(report: AuditReport) -> dict[str, Json]:
    return {
        "versions": dict(report.versions),
        "policy": report.policy,
        "baseline": report.baseline,
        "shard": report.shard,
        "interrupted": report.interrupted,
        "gone": [_gone(finding) for finding in report.gone],
        "summary": _summary(report),
    }


def _summary(report: AuditReport) -> Json:
    tally = tally_of(report)
    return {
        "targets": tally.targets,
        "clean": tally.clean,
        "with_findings": tally.found,
        "failed": tally.failed,
        "findings": {severity.value: count for severity, count in tally.severities.items()},
        "known": tally.known,
        "gone": tally.gone,
        "rules": {rule.code: _rule(rule) for rule in tally.rules},
    }


def _rule(rule: RuleTally) -> Json:
    return {
        "severity": rule.worst.value,
        "findings": rule.findings,
        "places": rule.places,
        "targets": rule.targets,
    }


def _gone(finding: GoneFinding) -> Json:
    return {
        "code": finding.code,
        "target": finding.target,
        "where": finding.where,
        "found": finding.found,
        "expected": finding.expected,
    }


# One target.


def _target(target: AuditedTarget) -> Json:
    named: dict[str, Json] = {
        "target": target.target,
        "family": target.family,
        "place": None if target.place is None else _place(target.place),
    }
    found: dict[str, Json] = {
        "findings": [_finding(finding) for finding in target.findings],
        "checked": list(target.checked),
        "unchecked": [{"code": one.code, "reason": one.reason} for one in target.unchecked],
    }
    if target.failure is not None:
        return {**named, **_failure(target.failure), **{k: v for k, v in found.items() if v}}
    facts = None if target.facts is None else _facts(target.facts)
    return {"schema": AUDITED_SCHEMA, **named, **found, "facts": facts}


def _place(place: Place) -> Json:
    return {"file": place.file, "line": place.line}


def _failure(failure: Failure) -> dict[str, Json]:
    return {
        "schema": FAILURE_SCHEMA,
        "kind": failure.kind.value,
        "message": failure.message,
        "hint": failure.hint,
    }


def _finding(finding: Finding) -> Json:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "where": finding.where,
        "places": list(finding.places),
        "message": finding.message,
        "detail": finding.detail,
        "found": finding.found,
        "expected": finding.expected,
        "known": finding.known,
        "fingerprint": finding.fingerprint,
    }


def _facts(facts: TargetFacts) -> Json:
    return {
        "class": facts.class_name,
        "model_type": facts.model_type,
        "revision": facts.revision,
        "config": facts.config,
        "dtype": facts.dtype,
        "parameters": facts.parameters,
        "placement": facts.placement,
        "stacks": [_stack(stack) for stack in facts.stacks],
        "outside": list(facts.outside),
        "norm_calls": facts.norm_calls,
    }


def _stack(stack: StackFacts) -> Json:
    return {
        "path": stack.path,
        "blocks": stack.blocks,
        "placements": list(stack.placements),
        "norms": list(stack.norms),
    }
