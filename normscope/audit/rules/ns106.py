"""NS106: an expectation of the policy that does not hold."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.unmet import unmet


def check(subject: Subject) -> Iterator[Observation]:
    """Find what is otherwise than the policy says."""
    yield from unmet(subject.inspection, subject.expectation)


RULE = Rule(
    code="NS106",
    title="expectation that does not hold",
    what="Compares every fact that the policy's `expect` names (placement, norm, eps, gain, bias, "
    "final_norm, embedding_norm, qk_norm, parallel, statistics_dtype, norms, and these for each "
    "stack) with what the target is.",
    severity=Severity.ERROR,
    why="The policy says what this family is. A difference is a changed forward, a re-uploaded "
    "checkpoint, or a policy that was wrong.",
    mend="Look at the target with `normscope inspect`, then correct it or the policy.",
    check=check,
)
