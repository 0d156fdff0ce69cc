"""NS304: gains and biases whose values are broken, untrained or far apart."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stored import problems_as_observations
from normscope.weights.judgements import StoredProblemKind


def check(subject: Subject) -> Iterator[Observation]:
    """Find them: errors first, then what is only worth knowing."""
    yield from problems_as_observations(
        subject,
        {
            StoredProblemKind.NON_FINITE: Severity.ERROR,
            StoredProblemKind.ALL_ZERO: None,
            StoredProblemKind.CONSTANT: Severity.NOTE,
            StoredProblemKind.DEAD_CHANNELS: Severity.NOTE,
            StoredProblemKind.OUTLIERS: Severity.NOTE,
        },
    )


RULE = Rule(
    code="NS304",
    title="gain or bias with implausible values",
    what="Reads the values of every gain and bias: NaN or infinity (an error), a gain of zero in "
    "every channel (a warning), one value in all channels, dead channels (effective gain zero) "
    "and outliers (over 10 times the median), which are notes.",
    severity=Severity.WARNING,
    why="Non-finite gains break every token. A constant gain was never trained or never loaded. "
    "Dead and outlying channels decide what pruning, folding and quantizing may do.",
    mend="Compare with the original checkpoint: `normscope diff A B`.",
    check=check,
    needs=Need.VALUES,
)
