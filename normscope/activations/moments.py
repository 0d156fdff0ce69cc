"""Moments of parts -> moments of the whole, in float64; knows no torch."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulated:
    """Count, mean, population variance and peak of the values seen so far."""

    count: int = 0
    mean: float = 0.0
    variance: float = 0.0
    peak: float = 0.0
    peak_channel: int = 0


def merge_moments(first: Accumulated, second: Accumulated) -> Accumulated:
    """Return the moments of two disjoint sets of values together.

    Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise algorithm for computing sample
    variances": the result does not depend on the order but for rounding in float64.
    """
    count = first.count + second.count
    if not count:
        return first
    share = second.count / count
    shift = second.mean - first.mean
    spread = first.variance * (first.count / count) + second.variance * share
    # Comparisons with NaN are false, so a NaN on either side is kept.
    larger = second if second.peak > first.peak or math.isnan(second.peak) else first
    return Accumulated(
        count=count,
        mean=first.mean + shift * share,
        variance=spread + shift * shift * share * (first.count / count),
        peak=larger.peak,
        peak_channel=larger.peak_channel,
    )
