"""NS103: a branch without any norm where its stack's other branches have one."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.inspection import Placement


def check(subject: Subject) -> Iterator[Observation]:
    """Find branches without a norm at any site, beside others of the stack that have one."""
    for stack in subject.inspection.stacks:
        blocks = [block for block in subject.inspection.blocks if block.stack == stack.path]
        branches = [(block, branch) for block in blocks for branch in block.branches]
        if all(branch.placement is Placement.NO_NORM for _, branch in branches):
            continue
        for block, branch in branches:
            if branch.placement is Placement.NO_NORM and not any(branch.norms.values()):
                yield Observation(
                    where=block.path,
                    message=f"the {branch.kind.value} branch has no norm: {branch.formula}",
                    found=f"{branch.kind.value} without norm",
                    expected="a norm as in the other branches",
                    block=block,
                )


RULE = Rule(
    code="NS103",
    title="branch without a norm",
    severity=Severity.WARNING,
    why="A branch that reads and writes the stream un-normalized beside normalized ones is often "
    "a norm that was forgotten, or lost in a rewrite.",
    mend="Compare the block with its siblings: `normscope inspect TARGET --blocks`.",
    check=check,
)
