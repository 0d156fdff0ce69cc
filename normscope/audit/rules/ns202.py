"""NS202: an eps that is zero, subnormal or no number, itself or when it is rounded."""

import math
import sys
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_by_path
from normscope.inspection import NormReport

_FEATURES = frozenset({"LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm", "BatchNorm"})
_SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
"""The smallest number that is not zero; half of it is rounded to zero."""
_LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.403e38}
_SMALLEST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126}


def check(subject: Subject) -> Iterator[Observation]:
    """Judge each eps in the dtype that it is added in, and all of them in float16."""
    blocks = blocks_by_path(subject.inspection)
    ran = [norm for norm in subject.inspection.norms if norm.calls and norm.kind in _FEATURES]
    for norm in ran:
        fault = _fault(norm)
        if fault is not None:
            message, found, severity = fault
            yield Observation(
                where=norm.name,
                message=message,
                found=found,
                expected="an eps that keeps the denominator from zero",
                severity=severity,
                block=blocks.get(norm.block or ""),
            )
    yield from _lost_in_float16([norm for norm in ran if _fault(norm) is None])


def _fault(norm: NormReport) -> tuple[str, str, Severity | None] | None:
    if not norm.eps:
        return "it has no eps: a row of equal values is divided by zero", "no eps", None
    dtype = norm.statistics_dtype or "float32"
    if not 0 <= norm.eps <= _LARGEST.get(dtype, sys.float_info.max):
        found = f"eps {norm.eps:g} is no positive number in {dtype}"
        return f"{found}: what the norm gives is not finite, or zero", found, Severity.ERROR
    if norm.eps <= _SMALLEST.get(dtype, 0.0) / 2:
        found = f"eps {norm.eps:g} is zero in {dtype}"
        return f"{found}, in which its statistics run", found, None
    if norm.eps < _SMALLEST_NORMAL.get(dtype, 0.0):
        found = f"eps {norm.eps:g} is subnormal in {dtype}"
        limit = _SMALLEST_NORMAL[dtype]
        return (
            f"{found} (below {limit:.2g}), in which its statistics run: kernels that flush "
            "subnormals divide by zero",
            found,
            Severity.NOTE,
        )
    return None


def _lost_in_float16(norms: list[NormReport]) -> Iterator[Observation]:
    """Yield one note for each eps: it is what a port to float16 has to know of the model."""
    lost = [norm.eps for norm in norms if norm.eps is not None and _is_zero_in_float16(norm.eps)]
    for eps in sorted(set(lost)):
        own = any(norm.cast == "no cast" for norm in norms if norm.eps == eps)
        where = (
            ", and in float16 the norms would add it as that"
            if own
            else ", which a port to float16 norms loses; here it is added in float32"
        )
        count = lost.count(eps)
        yield Observation(
            where="",
            message=f"eps {eps:g} is zero in float16 (below {2.0**-25:.1e}){where}",
            found=f"eps {eps:g} is zero in float16",
            expected="an eps of 6e-08 or more, for float16",
            severity=Severity.WARNING if own else Severity.NOTE,
            detail="one norm call" if count == 1 else f"{count} norm calls",
        )


def _is_zero_in_float16(eps: float) -> bool:
    return not math.isclose(eps, 0.0) and eps <= _SMALLEST["float16"] / 2


RULE = Rule(
    code="NS202",
    title="eps that is zero or subnormal when rounded",
    what="Rounds each eps to the dtype in which the norm's statistics run: a warning where "
    "nothing is left of it, an error where it is negative or not finite, a note where it is "
    "subnormal (below 6.1e-05 in float16). For norms that add it in float32, one note for the "
    "model where it would be zero in float16, like the 1e-12 of BERT.",
    severity=Severity.WARNING,
    why="Without eps a constant row, such as padding, is divided by zero: NaN from there on. "
    "Exports to float16 fail that way with models that are sound in float32.",
    mend="Keep the statistics in float32, or raise eps in the port and check NS404: an eps that "
    "is too large changes small rows.",
    check=check,
)
