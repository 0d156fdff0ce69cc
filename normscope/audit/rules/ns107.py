"""NS107: a placement or a norm that could not be decided."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.inspection import Placement


def check(subject: Subject) -> Iterator[Observation]:
    """Find branches whose placement is unknown, and a model in which no block was found."""
    inspection = subject.inspection
    if not inspection.blocks:
        yield Observation(where="", message="no residual block was found", found="no block")
    for block in inspection.blocks:
        for branch in block.branches:
            if branch.placement is Placement.UNKNOWN:
                reason = branch.reason or "the dataflow does not tell"
                yield Observation(
                    where=block.path,
                    message=f"the placement of the {branch.kind.value} branch is unknown: {reason}",
                    found="unknown",
                    expected="a placement",
                    block=block,
                )


RULE = Rule(
    code="NS107",
    title="placement that could not be decided",
    severity=Severity.ERROR,
    why="An audit that could not decide has not passed.",
    mend="Look at the evidence with `normscope inspect TARGET --explain PATH`, and report the "
    "model: what it does should have a name.",
    check=check,
)
