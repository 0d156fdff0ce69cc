"""NS405: an output that is not what the reported formula gives."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`."""
    yield from measured(
        subject, "NS405", "output off the formula", "the output of the reported formula"
    )


RULE = Rule(
    code="NS405",
    title="output that the reported formula does not give",
    what="Computes each norm's output again in float64 from its input, with the reported kind, "
    "eps, gain and bias, and compares. Needs `verify = true` in `[stats]`.",
    severity=Severity.ERROR,
    why="Then the norm is not what it is reported to be: a patched or fused kernel, or a fault of "
    "normscope.",
    mend="Compare the kernel with the plain module. Where no kernel was patched, report it.",
    check=check,
    needs=Need.STATISTICS,
)
