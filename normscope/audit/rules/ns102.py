"""NS102: a pre-norm stack whose stream nothing normalizes at its end."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.inspection import Inspection, Placement, Role, StackReport

_OPEN_ENDED = frozenset({Placement.PRE, Placement.SANDWICH, Placement.RES_POST})
_ENDS = frozenset({Role.FINAL, Role.BETWEEN_STACKS, Role.HEAD, Role.POOLER})


def check(subject: Subject) -> Iterator[Observation]:
    """Find stacks that leave the stream un-normalized, with no norm after their last block."""
    inspection = subject.inspection
    ran = [norm for norm in inspection.norms if norm.calls]
    last = {norm.block: number for number, norm in enumerate(ran) if norm.block is not None}
    for stack in inspection.stacks:
        if stack.placement not in _OPEN_ENDED:
            continue
        end = max((last.get(path, -1) for path in _blocks_of(stack, inspection)), default=-1)
        after = ran[end + 1 :]
        if not any(norm.role in _ENDS for norm in after):
            yield Observation(
                where=stack.path,
                message=f"{stack.path} is {stack.placement.value}, and no norm follows it",
                found="none",
                expected="a final norm",
            )


def _blocks_of(stack: StackReport, inspection: Inspection) -> list[str]:
    return [block.path for block in inspection.blocks if block.stack == stack.path]


RULE = Rule(
    code="NS102",
    title="pre-norm stack without a final norm",
    severity=Severity.WARNING,
    why="The stream of a pre-norm stack grows with depth, and its last value is read as it is: "
    "converters that dropped the final norm broke every model but the post-norm ones.",
    mend="Check that the checkpoint's class and config are the ones it was trained with.",
    check=check,
)
