"""NS404: an eps that is a large part of the variance."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`."""
    yield from measured(subject, "NS404", "large eps", "eps far below the variance")


RULE = Rule(
    code="NS404",
    title="eps that is a large part of the variance",
    what="Looks for rows in which eps makes up over 1% of the denominator: eps / (variance + eps).",
    severity=Severity.NOTE,
    why="There the norm scales by eps instead of by its input: an eps raised for float16, or "
    "another than the one that was trained with, changes the answer.",
    mend="Keep the eps of training. Where rows are small on purpose (an embedding), accept it with "
    "a budget.",
    check=check,
    needs=Need.STATISTICS,
)
