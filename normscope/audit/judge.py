"""Assignment + Inspection [+ Statistics] -> AuditedTarget."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from normscope.audit.facts import config_digest, facts_of
from normscope.audit.findings import Finding, Severity, merged
from normscope.audit.policy import Assignment
from normscope.audit.report import AuditedTarget, Unchecked
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.rules import RULES
from normscope.audit.unread import why_valueless
from normscope.inspection import Inspection
from normscope.statistics import Statistics
from normscope.weights.report import WeightsLevel

_RECOMPUTED = "NS405"
"""The rule that needs every output recomputed beside the statistics."""


def judge(
    assignment: Assignment,
    inspection: Inspection,
    statistics: Statistics | None = None,
    *,
    unmeasured: str | None = None,
    unread: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> AuditedTarget:
    """Check the assigned rules and say which could not be checked.

    `unmeasured` tells why there are no statistics, `unread` why there is nothing of the weights;
    `config` is the content of config.json. Rules of the lock file are for whoever has it.
    """
    subject = Subject(inspection=inspection, expectation=assignment.expect, statistics=statistics)
    rules = [rule for rule in RULES if rule.code in assignment.rules and rule.check is not None]
    reasons = {rule.code: _reason(rule, subject, unmeasured, unread) for rule in rules}
    checked = [rule for rule in rules if reasons[rule.code] is None]
    return AuditedTarget(
        target=assignment.target,
        family=assignment.family,
        place=assignment.place,
        facts=facts_of(inspection, config_digest(config)),
        findings=tuple(
            finding for rule in checked for finding in _findings(rule, subject, assignment)
        ),
        checked=tuple(rule.code for rule in checked),
        unchecked=tuple(
            Unchecked(code=code, reason=reason)
            for code, reason in reasons.items()
            if reason is not None
        ),
    )


def _findings(rule: Rule, subject: Subject, assignment: Assignment) -> Iterator[Finding]:
    """Yield what a rule finds; as many as the budget has are only notes."""
    if rule.check is None:
        return
    found = merged(
        rule.code,
        rule.severity,
        assignment.target,
        assignment.family,
        rule.check(subject),
    )
    left = assignment.budget.get(rule.code, 0)
    for finding in found:
        if left > 0 and finding.severity is not Severity.NOTE:
            left -= 1
            yield replace(finding, severity=Severity.NOTE)
        else:
            yield finding


def _reason(rule: Rule, subject: Subject, unmeasured: str | None, unread: str | None) -> str | None:
    """Return why a rule cannot be checked, or None."""
    if rule.needs in {Need.HEADERS, Need.VALUES}:
        return _without_weights(rule, subject.inspection, unread)
    if rule.needs is Need.STATISTICS:
        if subject.statistics is None:
            return unmeasured or "the policy has no [stats] input to measure on"
        if rule.code == _RECOMPUTED and not subject.statistics.verified:
            return "outputs were not recomputed: [stats] has no `verify = true`"
    return None


def _without_weights(rule: Rule, inspection: Inspection, unread: str | None) -> str | None:
    stored = inspection.stored
    if stored is None:
        return unread or "no weights are at hand"
    if rule.needs is Need.HEADERS:
        return None
    if stored.level is WeightsLevel.HEADERS:
        return "only the headers of the weights were read"
    return why_valueless(stored)
