"""NS103: a branch without any norm where its stack's other branches have one."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_of, reads_normalized
from normscope.inspection import BlockReport, BranchReport, Placement


def check(subject: Subject) -> Iterator[Observation]:
    """Find branches without a norm at any site, beside others of the stack that have one."""
    for stack in subject.inspection.stacks:
        branches = [
            (block, branch)
            for block in blocks_of(subject.inspection, stack)
            for branch in block.branches
        ]
        if not any(any(branch.norms.values()) for _, branch in branches):
            continue
        for block, branch in branches:
            if branch.placement is Placement.NO_NORM and not any(branch.norms.values()):
                fed = branch is block.branches[0] and reads_normalized(subject.inspection, block)
                yield _without_norm(block, branch, fed=fed)


def _without_norm(block: BlockReport, branch: BranchReport, *, fed: bool) -> Observation:
    but = ", but what it reads is normalized before the stack" if fed else ""
    return Observation(
        where=block.path,
        message=f"its {branch.kind.value} branch has no norm: {branch.formula}{but}",
        found=f"{branch.kind.value} without a norm",
        expected="a norm, as in other branches of the stack",
        severity=Severity.NOTE if fed else None,
        block=block,
    )


RULE = Rule(
    code="NS103",
    title="branch without a norm",
    what="Looks for branches with no norm before them, in them, behind them or on the stream, in "
    "stacks whose other branches have one. A note where the branch reads a norm before the stack "
    "(ModernBERT's first attention reads the embedding norm).",
    severity=Severity.WARNING,
    why="A branch that reads and writes the stream un-normalized beside normalized ones is often "
    "a norm that was forgotten, or lost in a rewrite.",
    mend="Compare the block with its siblings: `normscope inspect TARGET --blocks`.",
    check=check,
)
