"""NS301: a norm parameter of the model that the checkpoint does not have."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stored import problems_as_observations
from normscope.weights.judgements import StoredProblemKind


def check(subject: Subject) -> Iterator[Observation]:
    """Find the gains and biases that no stored tensor becomes."""
    yield from problems_as_observations(subject, {StoredProblemKind.MISSING: None})


RULE = Rule(
    code="NS301",
    title="norm parameter missing from the checkpoint",
    what="Holds each gain and bias of the model's norms against the names in the headers of the "
    "weights, renamed as transformers does on loading.",
    severity=Severity.ERROR,
    why="A missing gain is set to ones on loading, with a line in a log and exit status 0: a "
    "merged or re-saved model without its QK norms loads, and answers worse.",
    mend="Save the checkpoint again from a model that has the parameter, or correct the config: "
    "a flag may add a norm that this checkpoint was not trained with.",
    check=check,
    needs=Need.HEADERS,
)
