"""NS101: a block that is placed otherwise than the rest of its stack."""

from collections import Counter
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Compare each block with the most frequent wiring of its stack; a tie finds nothing."""
    inspection = subject.inspection
    for stack in inspection.stacks:
        blocks = [block for block in inspection.blocks if block.stack == stack.path]
        wirings = [tuple((b.kind, b.placement) for b in block.branches) for block in blocks]
        placements = [tuple(sorted({p.value for _, p in wiring})) for wiring in wirings]
        ranked = Counter(placements).most_common(2)
        if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
            continue
        usual = " and ".join(ranked[0][0])
        for block, placement in zip(blocks, placements, strict=True):
            if placement != ranked[0][0]:
                own = " and ".join(placement)
                yield Observation(
                    where=block.path,
                    message=f"the block is {own}, and most of {stack.path} is {usual}",
                    found=own,
                    expected=usual,
                )


RULE = Rule(
    code="NS101",
    title="block placed otherwise than its stack",
    severity=Severity.WARNING,
    why="A block whose norms stand elsewhere than in its siblings is either a design that every "
    "port has to copy, or a bug.",
    mend="Look at the block with `normscope inspect TARGET --explain PATH`; where it is meant, "
    "expect it in the policy with an override, or ignore NS101.",
    check=check,
)
