"""NS302: a stored norm parameter that the model does not read, of another shape or no fractions."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stored import problems_as_observations
from normscope.weights.judgements import StoredProblemKind


def check(subject: Subject) -> Iterator[Observation]:
    """Find stored parameters of norms that become nothing, or fit nothing."""
    unfit = {StoredProblemKind.SHAPE: None, StoredProblemKind.WHOLE_NUMBERS: None}
    yield from problems_as_observations(subject, unfit)
    stored = subject.inspection.stored
    unread = frozenset() if stored is None else frozenset(stored.unread_norms)
    for seen in problems_as_observations(subject, {StoredProblemKind.UNEXPECTED: Severity.WARNING}):
        if seen.where in unread:
            yield seen


RULE = Rule(
    code="NS302",
    title="stored norm parameter that the model cannot use",
    what="Looks in the headers of the weights for gains and biases of another shape than the "
    "model's or in a type of whole numbers (errors), and for stored tensors of norms that the "
    "model does not read (a warning): those at the place of one of its norms, and vectors alone "
    "in a module that it does not have.",
    severity=Severity.ERROR,
    why="What a checkpoint stores was trained: a norm that the model does not build is left out "
    "of every answer, as QK norms are where a flag of the config was lost. In whole numbers a "
    "gain of 0.9 is 0.",
    mend="Compare the config with the one that the checkpoint was trained with.",
    check=check,
    needs=Need.HEADERS,
)
