"""NS107: a placement or a norm that could not be decided."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_by_path
from normscope.inspection import Inspection, Placement


def check(subject: Subject) -> Iterator[Observation]:
    """Find what is unknown, a model without blocks, and verdicts that the numbers deny."""
    inspection = subject.inspection
    if not inspection.blocks:
        yield Observation(
            where="", message="no residual block was found", found="no block", expected="blocks"
        )
    yield from _undecided_branches(inspection)
    yield from _undecided_norms(inspection)
    yield from _denied(inspection)


def _undecided_branches(inspection: Inspection) -> Iterator[Observation]:
    for block in inspection.blocks:
        for branch in block.branches:
            if branch.placement is Placement.UNKNOWN:
                reason = branch.reason or "the dataflow does not tell"
                yield Observation(
                    where=block.path,
                    message=f"the placement of its {branch.kind.value} branch is unknown: {reason}",
                    found=f"{branch.kind.value} unknown",
                    expected="a placement",
                    block=block,
                )


def _undecided_norms(inspection: Inspection) -> Iterator[Observation]:
    blocks = blocks_by_path(inspection)
    for norm in inspection.norms:
        if norm.calls and norm.eps is None and norm.eps_position != "none":
            yield Observation(
                where=norm.name,
                message="an eps is added, and its value is not known",
                found="eps unknown",
                expected="an eps",
                block=blocks.get(norm.block or ""),
            )


def _denied(inspection: Inspection) -> Iterator[Observation]:
    if inspection.verification is None:
        return
    blocks = blocks_by_path(inspection)
    for seen in inspection.verification.branches:
        if not seen.agrees:
            yield Observation(
                where=seen.block,
                message=f"its {seen.kind.value} branch is {seen.reported.value} by the dataflow "
                f"and {seen.observed.value} by the numbers of a running copy",
                found=f"{seen.kind.value} {seen.observed.value}",
                expected=f"{seen.kind.value} {seen.reported.value}",
                block=blocks.get(seen.block),
            )
    for norm in inspection.verification.norms:
        for item in norm.checks:
            if not item.agrees:
                yield Observation(
                    where=norm.name,
                    message=f"its {item.fact} is {item.reported} by the dataflow and "
                    f"{item.observed} by a probe of the running norm",
                    found=f"{item.fact} {item.observed}",
                    expected=f"{item.fact} {item.reported}",
                )


RULE = Rule(
    code="NS107",
    title="placement or norm that could not be decided",
    what="Looks for branches whose placement is unknown, for norms with an eps of unknown value, "
    "for a model in which no residual block was found, and, where the target was verified, for "
    "verdicts that the numbers of a running copy deny.",
    severity=Severity.ERROR,
    why="An audit that could not decide has not passed.",
    mend="Look at the evidence with `normscope inspect TARGET --explain PATH`, and report the "
    "model: what it does should have a name.",
    check=check,
)
