"""What is wrong among stored parameters -> observations of the rules NS301 to NS305."""

from collections.abc import Iterator, Mapping

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Subject
from normscope.audit.stacks import block_around, blocks_by_path, numberless
from normscope.inspection import BlockReport
from normscope.weights.judgements import StoredProblem, StoredProblemKind, stored_problems

_FIGURES = frozenset(
    {
        StoredProblemKind.SHAPE,
        StoredProblemKind.WHOLE_NUMBERS,
        StoredProblemKind.OFFSET,
        StoredProblemKind.NON_FINITE,
        StoredProblemKind.DEAD_CHANNELS,
        StoredProblemKind.OUTLIERS,
        StoredProblemKind.RENAMED,
    }
)
"""Kinds of which every place, or every target, has its own figures or name: like ones are one."""


def problems_as_observations(
    subject: Subject, kinds: Mapping[StoredProblemKind, Severity | None]
) -> Iterator[Observation]:
    """Yield the problems of these kinds; a severity of None is the rule's own."""
    if subject.inspection.stored is None:
        return
    blocks = blocks_by_path(subject.inspection)
    for problem in stored_problems(subject.inspection.stored):
        if problem.kind in kinds:
            yield _observation(problem, kinds[problem.kind], block_around(problem.name, blocks))


def _observation(
    problem: StoredProblem, severity: Severity | None, block: BlockReport | None
) -> Observation:
    named = problem.kind is StoredProblemKind.RENAMED
    return Observation(
        where=problem.name,
        message=problem.message,
        found=problem.kind.value.replace("_", " "),
        expected="a tensor of the parameter's own name" if named else problem.expected,
        severity=severity,
        block=block,
        likeness=None if block is not None else numberless(problem.name),
        detail=problem.found if problem.kind in _FIGURES else "",
    )
