"""AuditReport -> its counts."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.audit.findings import Finding, Severity
from normscope.audit.report import AuditReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTally:
    """How often a rule is violated; what the baseline knows is not counted."""

    code: str
    worst: Severity
    findings: int
    places: int
    targets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counts of one report."""

    targets: int
    families: int
    """Families that a policy names; targets outside of one have none."""
    clean: int
    """Targets with an answer and without a new finding."""
    found: int
    """Targets with an answer and with a new finding."""
    failed: int
    severities: Mapping[Severity, int]
    """New findings."""
    known: int
    gone: int
    rules: tuple[RuleTally, ...]
    """Of the rules with new findings, by code."""
    checked: int
    """Distinct rules that were checked in a target at least."""

    @property
    def findings(self) -> int:
        """New findings of every severity."""
        return sum(self.severities.values())


def tally_of(report: AuditReport) -> Tally:
    """Count what a report holds."""
    new = report.findings()
    answered = [target for target in report.targets if target.failure is None]
    clean = sum(all(finding.known for finding in target.findings) for target in answered)
    return Tally(
        targets=len(report.targets),
        families=len({target.family for target in report.targets if target.family}),
        clean=clean,
        found=len(answered) - clean,
        failed=len(report.targets) - len(answered),
        severities={
            severity: sum(finding.severity is severity for finding in new) for severity in Severity
        },
        known=sum(finding.known for target in report.targets for finding in target.findings),
        gone=len(report.gone),
        rules=_rules(new),
        checked=len({code for target in report.targets for code in target.checked}),
    )


def _rules(findings: tuple[Finding, ...]) -> tuple[RuleTally, ...]:
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    return tuple(_rule(code, by_code[code]) for code in sorted(by_code))


def _rule(code: str, findings: list[Finding]) -> RuleTally:
    return RuleTally(
        code=code,
        worst=max((finding.severity for finding in findings), key=lambda found: found.rank),
        findings=len(findings),
        places=sum(len(finding.places) for finding in findings),
        targets=len({(finding.family, finding.target) for finding in findings}),
    )
