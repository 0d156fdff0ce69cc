"""AuditReport -> SARIF 2.1.0, the format of code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; sections are named where the text
of the standard asks for something that its schema cannot check.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from normscope.audit.findings import Finding, fingerprint_of
from normscope.audit.groups import grouped_unchecked
from normscope.audit.policy import Place
from normscope.audit.report import AuditedTarget, AuditReport, GoneFinding
from normscope.audit.rules import rule_of
from normscope.render.audit_words import INTERRUPTED, blocks_text
from normscope.render.figures import counted
from normscope.render.plain import Json, dumped
from normscope.render.visible import visible

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "SRCROOT"
_FINGERPRINT = "normscope/v1"
_LINK = re.compile(r"\](?=\()")
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """What results refer to."""

    indices: Mapping[str, int]
    """Code of a rule -> its place among the rules."""
    places: Mapping[str, Place | None]
    policy: str | None
    compared: bool
    """Whether there is a baseline."""


def render_audit_sarif(report: AuditReport) -> str:
    """Return one log with one run: a result for each finding, at the policy's line of its target.

    With a baseline each result says whether it is new, unchanged or absent. There are no times.
    """
    document: Json = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    return f"{dumped(document, indent=2)}\n"


def _run(report: AuditReport) -> Json:
    log = _Log(
        indices={code: index for index, code in enumerate(_codes(report))},
        places={target.target: target.place for target in report.targets},
        policy=report.policy,
        compared=report.baseline is not None,
    )
    results = [
        _result(finding, target, log) for target in report.targets for finding in target.findings
    ]
    results += [_absent(gone, log) for gone in report.gone]
    return {
        "tool": {"driver": _driver(report, log.indices)},
        "invocations": [_invocation(report, log.indices)],
        "originalUriBaseIds": {
            _ROOT: {"description": {"text": "The folder that the audit was started in."}}
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"versions": dict(report.versions)},
    }


def _codes(report: AuditReport) -> list[str]:
    """Return the codes of every rule that the report tells of, sorted."""
    codes = {gone.code for gone in report.gone}
    for target in report.targets:
        codes.update(target.checked)
        codes.update(finding.code for finding in target.findings)
        codes.update(one.code for one in target.unchecked)
    return sorted(codes)


# Rules.


def _driver(report: AuditReport, indices: Mapping[str, int]) -> Json:
    driver: dict[str, Json] = {"name": "normscope", "rules": [_rule(code) for code in indices]}
    version = report.versions.get("normscope")
    return driver if version is None else {**driver, "version": visible(version)}


def _rule(code: str) -> Json:
    rule = rule_of(code)
    if rule is None:
        return {"id": visible(code)}
    why, mend = _message(rule.why), _message(rule.mend)
    return {
        "id": rule.code,
        "shortDescription": {"text": _message(rule.title)},
        "fullDescription": {"text": why},
        "help": {
            "text": f"{why} To mend it: {mend}",
            "markdown": f"**Why it matters.** {why}\n\n**How to mend it.** {mend}",
        },
        "defaultConfiguration": {"level": rule.severity.value},
    }


# Results.


def _result(finding: Finding, target: AuditedTarget, log: _Log) -> Json:
    at = ", ".join(text for text in (finding.where, blocks_text(finding)) if text)
    subject = f"{finding.target}, {at}" if at else finding.target
    result: dict[str, Json] = {
        "ruleId": visible(finding.code),
        "ruleIndex": log.indices[finding.code],
        "level": finding.severity.value,
        "message": {"text": _message(f"{subject}: {finding.message}")},
        "locations": _locations(target.place, log.policy, finding.places),
        "partialFingerprints": {_FINGERPRINT: finding.fingerprint},
        "properties": _named(finding.target, finding.family),
    }
    if log.compared:
        result["baselineState"] = "unchanged" if finding.known else "new"
    return result


def _absent(gone: GoneFinding, log: _Log) -> Json:
    """Return a finding that is no more: what is absent passes, so that no reader counts it."""
    subject = f"{gone.target}, {gone.where}" if gone.where else gone.target
    return {
        "ruleId": visible(gone.code),
        "ruleIndex": log.indices[gone.code],
        "kind": "pass",
        "level": "none",
        "message": {"text": _message(f"{subject}: no longer {gone.found or 'found'}")},
        "locations": _locations(log.places.get(gone.target), log.policy, (gone.where,)),
        "partialFingerprints": {_FINGERPRINT: fingerprint_of(gone.identity)},
        "baselineState": "absent",
        "properties": _named(gone.target, ""),
    }


def _named(target: str, family: str) -> Json:
    return {"target": visible(target), "family": visible(family)}


def _locations(place: Place | None, policy: str | None, names: Iterable[str]) -> list[Json]:
    """Return the one place of a result; without a line it is in the policy as a whole."""
    location: dict[str, Json] = {}
    modules = dict.fromkeys(visible(name) for name in names if name)
    if place is not None:
        location["physicalLocation"] = {
            "artifactLocation": _artifact(place.file),
            "region": {"startLine": place.line},
        }
    elif policy is not None:
        location["physicalLocation"] = {"artifactLocation": _artifact(policy)}
    if modules:
        location["logicalLocations"] = [
            {"fullyQualifiedName": name, "kind": "module"} for name in modules
        ]
    return [location] if location else []


def _artifact(file: str) -> Json:
    """Return the file as a URI reference (3.4); a relative one starts at the root."""
    path = PurePosixPath(file)
    if _DRIVE.match(file):
        return {"uri": f"file:///{file[:2]}{_quoted(file[2:])}"}
    if path.is_absolute():
        return {"uri": f"file://{_quoted(str(path))}"}
    # A path that leaves the root cannot be said in terms of it (3.14.14).
    within = ".." not in path.parts
    return {"uri": _quoted(str(path)), **({"uriBaseId": _ROOT} if within else {})}


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "backslashreplace"), safe="/")


def _message(text: str) -> str:
    """Return a text in which nothing is a placeholder (3.11.5) or a link (3.11.6)."""
    return _LINK.sub("] ", visible(text).replace("{", "{{").replace("}", "}}"))


# What could not be done.


def _invocation(report: AuditReport, indices: Mapping[str, int]) -> Json:
    told: list[Json] = [_failed(target) for target in report.failed]
    if report.interrupted:
        told.append({"level": "error", "message": {"text": INTERRUPTED}})
    for group in grouped_unchecked(report):
        text = f"not checked in {counted(group.targets, 'target')}: {group.reason}"
        told += [
            {
                "level": "note",
                "message": {"text": _message(text)},
                "associatedRule": {"id": visible(code), "index": indices[code]},
            }
            for code in group.codes
        ]
    successful = not report.failed and not report.interrupted
    return {"executionSuccessful": successful, "toolExecutionNotifications": told}


def _failed(target: AuditedTarget) -> Json:
    failure = target.failure
    kind = "" if failure is None else failure.kind.value
    message = "" if failure is None else failure.message
    hint = f" (hint: {failure.hint})" if failure is not None and failure.hint else ""
    notification: dict[str, Json] = {
        "descriptor": {"id": kind},
        "level": "error",
        "message": {"text": _message(f"{target.target}: {message}{hint}")},
        "properties": _named(target.target, target.family),
    }
    locations = _locations(target.place, None, ())
    return {**notification, "locations": locations} if locations else notification
