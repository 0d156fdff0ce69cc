"""NS102: a pre-norm stack whose stream nothing normalizes at its end."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_of
from normscope.inspection import Inspection, Placement, StackReport

_OPEN_ENDED = frozenset({Placement.PRE, Placement.SANDWICH})
"""Placements whose stream grows without a norm of its own."""


def check(subject: Subject) -> Iterator[Observation]:
    """Find stacks whose last sum is un-normalized, and no norm reads it before other blocks do."""
    for stack in subject.inspection.stacks:
        if stack.ended_by == () and _last_placement(subject.inspection, stack) in _OPEN_ENDED:
            yield Observation(
                where=stack.path,
                message=f"its last block is {_last_placement(subject.inspection, stack).value}, "
                "and no norm follows it; a class with a head may have one",
                found="no final norm",
                expected="a final norm",
            )


def _last_placement(inspection: Inspection, stack: StackReport) -> Placement:
    branches = [branch for block in blocks_of(inspection, stack) for branch in block.branches]
    return branches[-1].placement if branches else Placement.UNKNOWN


RULE = Rule(
    code="NS102",
    title="pre-norm stack without a final norm",
    what="Follows the stream behind the last block of each pre-norm or sandwich stack to the "
    "norms that read it, pooled or not. A post-norm stack needs no final norm.",
    severity=Severity.WARNING,
    why="The stream of a pre-norm stack grows with depth. Converters that dropped the final norm "
    "broke every model but the post-norm ones.",
    mend="Check that the checkpoint's class and config are the ones it was trained with: some "
    "models keep the final norm in the class with the head.",
    check=check,
)
