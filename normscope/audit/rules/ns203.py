"""NS203: statistics in half precision, or squares before the upcast."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_by_path
from normscope.inspection import NormReport

_HALF = frozenset({"float16", "bfloat16"})
_SQUARED = frozenset({"LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm"})
"""Kinds that are given for hidden states; an L2 norm is left to its caller's precision."""


def check(subject: Subject) -> Iterator[Observation]:
    """Find norms that square or sum in half precision: a note where the model is in float32."""
    blocks = blocks_by_path(subject.inspection)
    half = subject.inspection.model.dtype in _HALF
    for norm in subject.inspection.norms:
        found = _found(norm) if norm.calls and norm.kind in _SQUARED else None
        if found is not None:
            when = "" if half else ", where the model runs in half precision"
            yield Observation(
                where=norm.name,
                message=f"{found}{when}",
                found=found,
                expected="statistics in float32",
                severity=None if half else Severity.NOTE,
                block=blocks.get(norm.block or ""),
            )


def _found(norm: NormReport) -> str | None:
    if norm.statistics_dtype in _HALF or norm.cast == "no cast":
        return "statistics in half precision"
    return "squares before the upcast" if norm.squares_in_half else None


RULE = Rule(
    code="NS203",
    title="statistics in half precision",
    what="Looks for norms whose mean or variance is taken in float16 or bfloat16, or that square "
    "their values before they cast them up. Read from the pass itself in a half-precision "
    "checkpoint (a warning), else from the norm's class run alone in bfloat16 (a note).",
    severity=Severity.WARNING,
    why="The square of 256 does not fit float16, and bfloat16 keeps three digits of a sum over "
    "thousands of channels.",
    mend="Cast the norm's input to float32 before the square, as T5, Llama and torch's own kernels "
    "do.",
    check=check,
)
