"""NS303: stored gains that are centred where a gain of their form is not."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stored import problems_as_observations
from normscope.weights.judgements import StoredProblemKind


def check(subject: Subject) -> Iterator[Observation]:
    """Find gains of 1 + w centred at 1 or -1, and gains of w centred at 0 or 2."""
    yield from problems_as_observations(subject, {StoredProblemKind.OFFSET: None})


RULE = Rule(
    code="NS303",
    title="gain offset applied twice or never",
    what="Takes the median of the means of all stored gains of one form: norms that multiply by "
    "1 + w store values near 0, norms that multiply by w store values near 1. What lies 1 above "
    "or 1 below that, to a tenth, is told.",
    severity=Severity.ERROR,
    why="Converters add the 1 of Gemma and Nemotron into the weights, or take it off. Loaded by "
    "code that adds it again, or never, such a checkpoint gives fluent nonsense and no error.",
    mend="Convert the checkpoint again with the offset that the model's code expects.",
    check=check,
    needs=Need.VALUES,
)
