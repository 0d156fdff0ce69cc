"""NS302: a stored norm parameter that the model does not read, or of another shape."""

import re
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stacks import numberless
from normscope.audit.stored import problems_as_observations
from normscope.inspection import Inspection
from normscope.weights.judgements import StoredProblemKind

_NORM = re.compile(r"norms?(?![a-z])|(?:^|[._])ln(?:[._\d]|$)", re.IGNORECASE)


def check(subject: Subject) -> Iterator[Observation]:
    """Find stored parameters of norms that become nothing, or fit nothing."""
    yield from problems_as_observations(subject, {StoredProblemKind.SHAPE: None})
    known = _known_places(subject.inspection)
    for seen in problems_as_observations(subject, {StoredProblemKind.UNEXPECTED: Severity.WARNING}):
        if numberless(seen.where) in known or _is_called_norm(seen.where):
            yield seen


def _known_places(inspection: Inspection) -> set[str]:
    names = [name for norm in inspection.norms for name in (norm.weight, norm.bias_name)]
    return {numberless(name) for name in names if name is not None}


def _is_called_norm(name: str) -> bool:
    """Tell whether a tensor's name says that it is a norm's.

    No code reads it, so its name is all that there is to go by.
    """
    return _NORM.search(".".join(name.split(".")[-2:])) is not None


RULE = Rule(
    code="NS302",
    title="stored norm parameter that the model cannot use",
    what="Looks in the headers of the weights for gains and biases of another shape than the "
    "model's (an error), and for stored tensors of norms that the model does not read (a warning).",
    severity=Severity.ERROR,
    why="What a checkpoint stores was trained: a norm that the model does not build is left out "
    "of every answer, as QK norms are where a flag of the config was lost.",
    mend="Compare the config with the one that the checkpoint was trained with.",
    check=check,
    needs=Need.HEADERS,
)
