"""NS305: a stored tensor that is only read because it is renamed on loading."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stored import problems_as_observations
from normscope.weights.judgements import StoredProblemKind


def check(subject: Subject) -> Iterator[Observation]:
    """Find norm parameters that are stored under another name than the model's."""
    yield from problems_as_observations(subject, {StoredProblemKind.RENAMED: None})


RULE = Rule(
    code="NS305",
    title="norm parameter read only by renaming",
    what="Looks for gains and biases whose tensor has another name in the file than in the model "
    "(gamma and beta of old BERT checkpoints), beyond the prefix that a head adds.",
    severity=Severity.NOTE,
    why="transformers renames them on loading. Loaders that do not know the old names leave the "
    "norm untrained without a word.",
    mend="Load the model once and save it again.",
    check=check,
    needs=Need.HEADERS,
)
