"""NS108: a skip that is taken from the norm's output."""

import re
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_by_path, blocks_of
from normscope.inspection import BlockReport, BranchReport, Inspection, Site, StackReport

_SKIP_OF_NORM = re.compile(r"^(?:[^\s()]+·)?N\(x\) [+-] .*f\(N\(x\)\)")
"""`N(x) + f(N(x))`, perhaps with factors.

A projected skip `P(N(x))` is another design, and so is a norm on the skip alone (RepVGG).
"""


def check(subject: Subject) -> Iterator[Observation]:
    """Find such skips: a note where all of a stack are so, an error where some blocks are."""
    for stack in subject.inspection.stacks:
        blocks = blocks_of(subject.inspection, stack)
        found = [block for block in blocks if any(map(_skips_from_norm, block.branches))]
        severity = Severity.NOTE if len(found) == len(blocks) else Severity.ERROR
        for block in found:
            yield from _observed(block, severity)
        if not found and _handed_on(subject.inspection, stack):
            yield Observation(
                where=stack.path,
                message="the norm that begins each block normalizes what the skip carries on: "
                "n = N(x); n + f(n), and so the stack is post-norm",
                found="skip from the norm",
                expected="skip from the norm's input, where pre-norm was meant",
                severity=Severity.NOTE,
            )
    for block in subject.inspection.blocks:
        if block.stack is None:
            yield from _observed(block, Severity.NOTE)


def _observed(block: BlockReport, severity: Severity) -> Iterator[Observation]:
    for branch in block.branches:
        if _skips_from_norm(branch):
            yield Observation(
                where=block.path,
                message=f"the skip around its {branch.kind.value} branch is taken from the norm's "
                f"output: {branch.formula}",
                found=f"{branch.kind.value} skip from the norm",
                expected="skip from the norm's input",
                severity=severity,
                block=block,
            )


def _skips_from_norm(branch: BranchReport) -> bool:
    return _SKIP_OF_NORM.match(branch.formula) is not None


def _handed_on(inspection: Inspection, stack: StackReport) -> bool:
    """Tell whether trunk norms of the stack's blocks stand in the blocks that follow them.

    BERT's lie in their own block; MiniMax's first norm of a block normalizes the block before.
    """
    blocks = blocks_by_path(inspection)
    paths = {block.path for block in blocks_of(inspection, stack)}
    norms = {norm.name: norm.module or norm.name for norm in inspection.norms}
    return any(
        _element_around(norms.get(name, name), paths) not in (None, block.path)
        for block in blocks.values()
        if block.path in paths
        for branch in block.branches
        for name in branch.norms.get(Site.TRUNK, ())
    )


def _element_around(path: str, paths: set[str]) -> str | None:
    while path and path not in paths:
        path = path.rpartition(".")[0]
    return path or None


RULE = Rule(
    code="NS108",
    title="skip taken from the norm's output",
    what="Looks for `n = N(x); n + f(n)`: an error where some blocks of a stack do it, a note "
    "where the whole stack does. Seen from the stream that is post-norm, whatever the norm is "
    "called.",
    severity=Severity.ERROR,
    why="Where pre-norm was meant it is a bug that several frameworks have shipped: the model "
    "trains, and is another model than its config says.",
    mend="Take the skip from the norm's input. Where it is meant, expect post-norm in the policy.",
    check=check,
)
