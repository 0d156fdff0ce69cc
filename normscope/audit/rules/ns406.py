"""NS406: a value that is no number."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`."""
    yield from measured(subject, "NS406", "not finite", "finite values")


RULE = Rule(
    code="NS406",
    title="values that are not finite",
    what="Looks for NaN and infinity before and after each norm, and names the first norm where "
    "they appear.",
    severity=Severity.ERROR,
    why="Everything behind that norm is NaN.",
    mend="Look at what stands before the named norm; see NS304 for its gain and NS403 for the "
    "range of float16.",
    check=check,
    needs=Need.STATISTICS,
)
