"""NS204: a gain of the form 1 + w whose small w is lost in bfloat16."""

from collections.abc import Iterator, Sequence

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Need, Rule, Subject
from normscope.audit.stacks import blocks_by_path
from normscope.inspection import BlockReport, NormReport
from normscope.weights.report import ValueFacts


def check(subject: Subject) -> Iterator[Observation]:
    """Find them: a warning where the sum is made in bfloat16, a note where a port might."""
    stored = subject.inspection.stored
    if stored is None:
        return
    values = {item.name: item.values for item in stored.parameters if item.values is not None}
    blocks = blocks_by_path(subject.inspection)
    losing = [
        (norm, found)
        for norm in subject.inspection.norms
        if norm.call == 0
        and (found := values.get(norm.weight or "")) is not None
        and found.offset
        and found.lost_in_bfloat16
    ]
    detail = _most([found for _, found in losing])
    for norm, _ in losing:
        yield _lost(norm, detail, blocks.get(norm.block or ""))


def _most(losses: Sequence[ValueFacts]) -> str:
    """Return how much is lost in the worst of the norms: one text, that they be told together."""
    if not losses:
        return ""
    worst = max(losses, key=lambda values: values.lost_in_bfloat16 / values.count)
    upper = "" if len(losses) == 1 else "up to "
    error = max(values.bfloat16_error for values in losses)
    channels = f"{worst.lost_in_bfloat16} of {worst.count} channels"
    return f"{upper}{channels}, relative error up to {error:.2g}"


def _lost(norm: NormReport, detail: str, block: BlockReport | None) -> Observation:
    here = norm.gain_dtype == "bfloat16"
    where = "as it is here" if here else f"here it is made in {norm.gain_dtype or 'float32'}"
    return Observation(
        where=norm.name,
        message=f"w is lost in 1 + w where that is made in bfloat16, {where}",
        found="w lost in 1 + w",
        expected="1 + w in float32",
        severity=None if here else Severity.NOTE,
        block=block,
        detail=detail,
    )


RULE = Rule(
    code="NS204",
    title="small gain w lost in 1 + w",
    what="Counts the channels of each norm with a gain of 1 + w whose w is not zero and whose "
    "1 + w is 1 in bfloat16. A warning where the norm makes the sum in bfloat16, a note where it "
    "makes it in float32 as Gemma does.",
    severity=Severity.WARNING,
    why="bfloat16 has steps of 0.008 above 1. A port that folds 1 + w into bfloat16 weights drops "
    "what was learned.",
    mend="Make 1 + w in float32, and keep gains in float32 where they are folded.",
    check=check,
    needs=Need.VALUES,
)
