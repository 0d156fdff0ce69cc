"""Statistics with recomputed outputs -> norms whose output is not what the formula gives: NS405."""

from collections.abc import Iterator

from normscope.activations.finding_words import other_norms, place_of
from normscope.statistics import NormStatistics, Statistics, StatisticsFinding, Thresholds

TOLERANCES = {"float64": 1e-10, "float32": 3e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Five to ten times the worst error seen in small random copies of some 180 model types (4e-5,
9e-4 and 9e-3), whose inputs have small offsets."""


def wrong_outputs(statistics: Statistics, thresholds: Thresholds) -> Iterator[StatisticsFinding]:
    """Yield NS405, one finding for all norms of a kind, with the one that is farthest off."""
    found = [
        norm
        for norm in statistics.norms
        if norm.error is not None and not norm.error <= tolerance_of(norm, thresholds)
    ]
    for kind in dict.fromkeys(norm.kind for norm in found):
        yield _wrong_output([norm for norm in found if norm.kind == kind], thresholds)


def tolerance_of(norm: NormStatistics, thresholds: Thresholds) -> float:
    """Return the largest error that the dtype of a norm's output explains."""
    if thresholds.error is not None:
        return thresholds.error
    return TOLERANCES.get(norm.output_dtype or "", TOLERANCES["float32"])


def _wrong_output(norms: list[NormStatistics], thresholds: Thresholds) -> StatisticsFinding:
    worst = max(norms, key=lambda norm: norm.error or 0.0)
    eps = f"eps {worst.eps:g} ({worst.eps_position})" if worst.eps else "no eps"
    more = f"; also off in {other_norms(len(norms) - 1)}" if len(norms) > 1 else ""
    return StatisticsFinding(
        code="NS405",
        severity="error",
        where=worst.name,
        message=f"the output of {worst.name} is not what {worst.kind} with {eps} gives: "
        f"relative error {worst.error:.2g}, over {tolerance_of(worst, thresholds):g} "
        f"for {worst.output_dtype}{more}",
        first=place_of(norms[0]),
        last=place_of(norms[-1]),
    )
