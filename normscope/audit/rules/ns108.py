"""NS108: a skip that is taken from the norm's output."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.inspection import BlockReport

_FORMULA = "N(x) + f(N(x))"


def check(subject: Subject) -> Iterator[Observation]:
    """Find such blocks: a note where all of a stack are so, an error where some are."""
    inspection = subject.inspection
    for stack in inspection.stacks:
        blocks = [block for block in inspection.blocks if block.stack == stack.path]
        found = [block for block in blocks if _skips_from_norm(block)]
        severity = Severity.NOTE if len(found) == len(blocks) else Severity.ERROR
        for block in found:
            yield Observation(
                where=block.path,
                message=f"the skip is taken from the norm's output: {_FORMULA}",
                found=_FORMULA,
                expected="x + f(N(x))",
                severity=severity,
                block=block,
            )


def _skips_from_norm(block: BlockReport) -> bool:
    return any(branch.formula.startswith("N(x) + ") for branch in block.branches)


RULE = Rule(
    code="NS108",
    title="skip taken from the norm's output",
    severity=Severity.ERROR,
    why="Seen from the stream `n = N(x); n + f(n)` is post-norm. Where pre-norm was meant it is a "
    "bug that several frameworks have shipped.",
    mend="Take the skip from the norm's input, or expect post-norm in the policy.",
    check=check,
)
