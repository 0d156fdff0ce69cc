"""AuditReport -> JUnit XML as GitLab and Jenkins read it: a case for each target and rule.

Both tell cases apart by class and name, and read one failure of a case; so a rule's findings in one
target are one failure, and every name is there once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from xml.sax.saxutils import escape, quoteattr

from normscope.audit.findings import Finding, Severity
from normscope.audit.report import AuditedTarget, AuditReport
from normscope.render.audit_words import INTERRUPTED, blocks_text
from normscope.render.inert import inert_xml
from normscope.render.visible import visible


class _Outcome(StrEnum):
    """How a case ended; the name of the element that says so."""

    PASSED = ""
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One target held against one rule."""

    suite: str
    name: str
    place: Mapping[str, str]
    outcome: _Outcome = _Outcome.PASSED
    kind: str = ""
    """What a failure or an error is of: a code, or the kind of a failure."""
    message: str = ""
    details: str = ""


def render_audit_junit(report: AuditReport, *, fail_on: Severity = Severity.WARNING) -> str:
    """Return one suite for each family, or for each target that is of none.

    Findings below `fail_on` and those that the baseline knows are told in cases that pass.
    """
    suites: dict[str, list[_Case]] = {}
    for case in _cases(report, fail_on):
        suites.setdefault(case.suite, []).append(case)
    everything = [case for cases in suites.values() for case in cases]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes({'name': 'normscope audit', **_counts(everything)})}>",
        *(line for name, cases in suites.items() for line in _suite(name, cases)),
        "</testsuites>",
    ]
    # References instead of characters: the same document whatever the encoding of the output.
    text = inert_xml("".join(f"{line}\n" for line in lines))
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _cases(report: AuditReport, fail_on: Severity) -> Iterator[_Case]:
    for target in report.targets:
        yield from _cases_of(target, fail_on)
    if report.interrupted:
        yield _Case(
            suite="normscope",
            name="every target is answered",
            place={},
            outcome=_Outcome.ERROR,
            kind="interrupted",
            message=INTERRUPTED,
        )


def _cases_of(target: AuditedTarget, fail_on: Severity) -> Iterator[_Case]:
    if target.failure is not None:
        yield _error(target)
    found: dict[str, list[Finding]] = {code: [] for code in target.checked}
    for finding in target.findings:
        found.setdefault(finding.code, []).append(finding)
    for code in sorted(found):
        yield _checked(target, code, found[code], fail_on)
    for one in target.unchecked:
        if one.code not in found:
            yield _Case(
                suite=_suite_name(target),
                name=f"{one.code} {target.target}",
                place=_place(target),
                outcome=_Outcome.SKIPPED,
                message=one.reason,
            )


def _checked(target: AuditedTarget, code: str, findings: list[Finding], fail_on: Severity) -> _Case:
    failing = [one for one in findings if not one.known and one.severity.rank >= fail_on.rank]
    told = failing or findings
    return _Case(
        suite=_suite_name(target),
        name=f"{code} {target.target}",
        place=_place(target),
        outcome=_Outcome.FAILURE if failing else _Outcome.PASSED,
        kind=code,
        message=_line(told[0]) if len(told) == 1 else f"{len(told):,} findings",
        details="\n".join(map(_line, findings)),
    )


def _line(finding: Finding) -> str:
    at = ", ".join(text for text in (finding.where, blocks_text(finding)) if text)
    known = " (known)" if finding.known else ""
    message = f"{at}: {finding.message}" if at else finding.message
    return visible(f"{finding.severity.value}{known}: {message}")


def _error(target: AuditedTarget) -> _Case:
    failure = target.failure
    message, hint = ("", "") if failure is None else (failure.message, failure.hint)
    return _Case(
        suite=_suite_name(target),
        name=f"inspection {target.target}",
        place=_place(target),
        outcome=_Outcome.ERROR,
        kind="" if failure is None else failure.kind.value,
        message=message,
        details=f"{visible(message)}\nhint: {visible(hint)}" if hint else visible(message),
    )


def _suite_name(target: AuditedTarget) -> str:
    return target.family or target.target


def _place(target: AuditedTarget) -> Mapping[str, str]:
    place = target.place
    return {} if place is None else {"file": place.file, "line": str(place.line)}


# XML.


def _suite(name: str, cases: list[_Case]) -> Iterator[str]:
    yield f"  <testsuite{_attributes({'name': name, **_counts(cases)})}>"
    for case in cases:
        yield from _case(case)
    yield "  </testsuite>"


def _counts(cases: list[_Case]) -> Mapping[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(outcomes.count(_Outcome.FAILURE)),
        "errors": str(outcomes.count(_Outcome.ERROR)),
        "skipped": str(outcomes.count(_Outcome.SKIPPED)),
    }


def _case(case: _Case) -> Iterator[str]:
    opened = (
        f"    <testcase{_attributes({'classname': case.suite, 'name': case.name, **case.place})}"
    )
    if case.outcome is _Outcome.PASSED and not case.details:
        yield f"{opened}/>"
        return
    yield f"{opened}>"
    if case.outcome is _Outcome.PASSED:
        yield f"      <system-out>{escape(case.details)}</system-out>"
    elif case.outcome is _Outcome.SKIPPED:
        yield f"      <skipped{_attributes({'message': case.message})}/>"
    else:
        told = _attributes({"message": case.message, "type": case.kind})
        name = case.outcome.value
        yield f"      <{name}{told}>{escape(case.details)}</{name}>"
    yield "    </testcase>"


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoteattr(visible(value))}" for name, value in values.items())
