"""NS101: a block that is placed otherwise than the rest of its stack."""

from collections import Counter
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_of, reads_normalized
from normscope.inspection import (
    BlockReport,
    BranchReport,
    Inspection,
    Placement,
    StackReport,
)

_Wiring = tuple[str, ...]


def check(subject: Subject) -> Iterator[Observation]:
    """Compare each block with the most frequent wiring of its stack; a tie finds nothing."""
    for stack in subject.inspection.stacks:
        expected = subject.expectation.of_stack(stack.path).placement
        for block, own, usual in _odd_blocks(subject.inspection, stack):
            if own != (expected,):
                yield Observation(
                    where=block.path,
                    message=f"it is {_words(own)}, and most of its stack is {_words(usual)}",
                    found=_words(own),
                    expected=_words(usual),
                    block=block,
                )


def _odd_blocks(
    inspection: Inspection, stack: StackReport
) -> Iterator[tuple[BlockReport, _Wiring, _Wiring]]:
    wirings = [(block, _wiring(inspection, block)) for block in blocks_of(inspection, stack)]
    known = [(block, wiring) for block, wiring in wirings if wiring]
    ranked = Counter(wiring for _, wiring in known).most_common(2)
    if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
        return
    usual = ranked[0][0]
    yield from ((block, wiring, usual) for block, wiring in known if wiring != usual)


def _wiring(inspection: Inspection, block: BlockReport) -> _Wiring:
    """Return the placements of a block's branches in order, equal ones in a row once.

    Nothing is returned for a block with an undecided branch: that is another rule's finding.
    """
    placements = [branch.placement for branch in block.branches if _keeps_the_width(branch)]
    if Placement.UNKNOWN in placements:
        return ()
    if Placement.NO_NORM in placements and reads_normalized(inspection, block):
        placements.remove(Placement.NO_NORM)  # its norm stands before the stack
    return tuple(
        placement.value
        for before, placement in zip((None, *placements), placements, strict=False)
        if placement is not before
    )


def _keeps_the_width(branch: BranchReport) -> bool:
    """Tell whether its skip is the stream itself: where a stage begins it is projected or absent.

    Such a block differs from its stack in more than its norms.
    """
    skip, plus, _ = branch.formula.partition(" + ")
    return branch.placement is not Placement.OTHER or (bool(plus) and "P(" not in skip)


def _words(wiring: _Wiring) -> str:
    return " and ".join(wiring)


RULE = Rule(
    code="NS101",
    title="block placed otherwise than its stack",
    what="Compares the placements of each block's branches with those of most blocks of its "
    "stack. What the policy expects of the stack is never odd, and a block that begins a stage "
    "(its skip is projected or absent) is not compared.",
    severity=Severity.WARNING,
    why="A block whose norms stand elsewhere than in its siblings is either a design that every "
    "port has to copy, or a bug.",
    mend="Look at the block with `normscope inspect TARGET --explain PATH`. Where it is meant, "
    "ignore NS101 in an override for this target.",
    check=check,
)
