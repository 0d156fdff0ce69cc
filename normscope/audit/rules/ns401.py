"""NS401: a massive activation."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`."""
    yield from measured(
        subject, "NS401", "massive activation in channel {channel}", "no massive activation"
    )


RULE = Rule(
    code="NS401",
    title="massive activation",
    what="Looks for a value over 100 and over 1,000 times the median magnitude of its tensor, in "
    "at most 3 channels, with the first and the last block where it stands. The thresholds "
    "are those of `[stats.thresholds]`.",
    severity=Severity.WARNING,
    why="A few channels at a few tokens dominate every mean, set the scale of quantization and "
    "overflow float16. Most large models have some; new ones say that a checkpoint or a "
    "conversion has changed.",
    mend="Quantize those channels apart, or accept them with a budget: `budget = { NS401 = 2 }`.",
    check=check,
    needs=Need.STATISTICS,
)
