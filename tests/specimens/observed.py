"""What one rule says of an inspection, and inspections with one thing changed."""

from collections.abc import Callable
from dataclasses import replace

from normscope.audit.expectations import Expectation
from normscope.audit.findings import Finding, Observation, Severity, merged
from normscope.audit.rule import Subject
from normscope.audit.rules import required_rule
from normscope.inspection import (
    BlockReport,
    BranchReport,
    EpsSetting,
    Inspection,
    NormReport,
    Placement,
)
from normscope.statistics import Statistics


def observed(
    code: str,
    inspection: Inspection,
    expectation: Expectation | None = None,
    statistics: Statistics | None = None,
) -> list[Observation]:
    """Return what a rule observes."""
    subject = Subject(
        inspection=inspection,
        expectation=expectation or Expectation(),
        statistics=statistics,
    )
    rule = required_rule(code)
    assert rule.check is not None
    return list(rule.check(subject))


def found(code: str, inspection: Inspection, statistics: Statistics | None = None) -> list[Finding]:
    """Return a rule's findings, like places merged."""
    rule = required_rule(code)
    seen = observed(code, inspection, statistics=statistics)
    return list(merged(code, rule.severity, inspection.target, "", seen))


def severities(code: str, observations: list[Observation]) -> list[Severity]:
    """Return how bad each is, with the rule's own severity where it says nothing."""
    return [seen.severity or required_rule(code).severity for seen in observations]


def with_norm(inspection: Inspection, name: str, /, **changes: object) -> Inspection:
    """Change the norms of this name."""
    norms = tuple(
        replace(norm, **changes) if norm.name == name else norm  # type: ignore[arg-type]
        for norm in inspection.norms
    )
    assert norms != inspection.norms
    return replace(inspection, norms=norms)


def with_norms(inspection: Inspection, change: Callable[[NormReport], NormReport]) -> Inspection:
    """Change every norm."""
    return replace(inspection, norms=tuple(map(change, inspection.norms)))


def with_branch(inspection: Inspection, path: str, number: int, /, **changes: object) -> Inspection:
    """Change one branch of the block at `path`, and the block's placement with it."""
    blocks = tuple(
        _with_branch(block, number, changes) if block.path == path else block
        for block in inspection.blocks
    )
    assert blocks != inspection.blocks
    return replace(inspection, blocks=blocks)


def _with_branch(block: BlockReport, number: int, changes: dict[str, object]) -> BlockReport:
    branches: list[BranchReport] = list(block.branches)
    branches[number] = replace(branches[number], **changes)  # type: ignore[arg-type]
    names = {branch.placement for branch in branches}
    placement = names.pop() if len(names) == 1 else Placement.MIXED
    return replace(block, branches=tuple(branches), placement=placement)


def ended(inspection: Inspection, *names: str) -> Inspection:
    """Say which norms read the stream behind each stack."""
    return replace(
        inspection,
        stacks=tuple(replace(stack, ended_by=names) for stack in inspection.stacks),
    )


def with_settings(inspection: Inspection, **settings: float | None) -> Inspection:
    """Give the config these eps; `__` stands for a dot of the key."""
    made = tuple(
        EpsSetting(key=key.replace("__", "."), value=value) for key, value in settings.items()
    )
    return replace(inspection, model=replace(inspection.model, eps_settings=made))
