"""Statistics -> values that are too large, too small or no numbers: NS403, NS404 and NS406."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normscope.activations.finding_words import entry_in_words, place_of, rounded, token_at
from normscope.statistics import (
    Moments,
    NormStatistics,
    Quantity,
    Statistics,
    StatisticsFinding,
    Thresholds,
)

LARGEST_FLOAT16 = 65504.0
LARGEST_SQUARED_IN_FLOAT16 = 255.0
_HALF = frozenset({"float16", "bfloat16"})
_EPS_KINDS = frozenset({"LayerNorm", "RMSNorm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """What goes into a norm or comes out of it."""

    norm: NormStatistics
    word: str
    """`before` or `after`."""
    moments: Moments

    def largest(self) -> float:
        """Return the largest value that is finite."""
        known = self.moments.summary(Quantity.PEAK).maximum
        if math.isfinite(known):
            return known
        return max((_finite(value) for value in self.moments.peak), default=0.0)

    def worst(self) -> int:
        """Return the entry that has it."""
        peaks = self.moments.peak
        return max(range(len(peaks)), key=lambda index: _finite(peaks[index]))


def _points(statistics: Statistics, *words: str) -> Iterator[_Point]:
    """Yield the points of all norms in order of execution."""
    for norm in statistics.norms:
        for word, moments in (("before", norm.before), ("after", norm.after)):
            if moments is not None and word in words:
                yield _Point(norm=norm, word=word, moments=moments)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


# NS403: float16.


def too_large_for_float16(statistics: Statistics) -> Iterator[StatisticsFinding]:
    """Yield NS403: the first point that is out of range, and how large values become.

    What a run in float32 holds tells whether one in float16 would overflow.
    """
    found = [
        point
        for point in _points(statistics, "before", "after")
        if point.largest() > LARGEST_FLOAT16
    ]
    if found:
        yield _out_of_range(statistics, found, "does not fit float16 (largest 65,504)", "error")
    squared = [
        point
        for point in _points(statistics, "before")
        if point.norm.statistics_dtype in _HALF and point.largest() > LARGEST_SQUARED_IN_FLOAT16
    ]
    if squared:
        what = "has a square that does not fit float16, and this norm squares in half precision"
        yield _out_of_range(statistics, squared, what, "warning")


def _out_of_range(
    statistics: Statistics, points: Sequence[_Point], what: str, severity: str
) -> StatisticsFinding:
    first, worst = points[0], max(points, key=_Point.largest)
    token, channel = first.worst(), first.moments.peak_channel[first.worst()]
    more = f"; up to {rounded(worst.largest())} {worst.word} {worst.norm.name}"
    block = f" in {first.norm.block}" if first.norm.block else ""
    return StatisticsFinding(
        code="NS403",
        severity=severity,
        where=first.norm.name,
        message=f"{rounded(first.largest())} at {entry_in_words(statistics, first.norm, token)}, "
        f"channel {channel}, {first.word} {first.norm.name}{block} {what}"
        + ("" if worst is first else more),
        token=token_at(statistics, first.norm, token),
        channel=channel,
        first=place_of(first.norm),
        last=place_of(points[-1].norm),
    )


# NS404: eps.


def large_eps(statistics: Statistics, thresholds: Thresholds) -> Iterator[StatisticsFinding]:
    """Yield NS404, one finding for all norms, with the one where eps weighs most."""
    shares = {
        index: found
        for index, norm in enumerate(statistics.norms)
        if (found := _eps_shares(norm)) and max(found) > thresholds.eps_share
    }
    if not shares:
        return
    index, worst = max(shares.items(), key=lambda item: max(item[1]))
    norm, token = statistics.norms[index], worst.index(max(worst))
    first, last = (place_of(statistics.norms[place]) for place in (min(shares), max(shares)))
    limit = 100 * thresholds.eps_share
    others = "this norm alone" if len(shares) == 1 else f"{len(shares)} norms, from {first}"
    yield StatisticsFinding(
        code="NS404",
        severity="note",
        where=norm.name,
        message=f"eps {norm.eps:g} is {worst[token]:.1%} of the denominator of {norm.name} at "
        f"{entry_in_words(statistics, norm, token)}; over {limit:.3g}% in {others}"
        + ("" if first == last else f" to {last}"),
        token=token_at(statistics, norm, token),
        first=first,
        last=last,
    )


def _eps_shares(norm: NormStatistics) -> list[float]:
    """Return eps / (var + eps) for each token."""
    eligible = norm.kind in _EPS_KINDS and norm.eps_position == "inside"
    if norm.before is None or not norm.eps or not eligible or norm.rows_per_token is None:
        return []
    if math.isinf(norm.eps):
        return [1.0] * len(norm.before.variance)
    return [norm.eps / (square + norm.eps) for square in _squares(norm.kind, norm.before)]


def _squares(kind: str, moments: Moments) -> list[float]:
    """Return what stands under the root: the variance, for RMS with the mean's square."""
    if kind == "LayerNorm":
        return list(moments.variance)
    pairs = zip(moments.mean, moments.variance, strict=True)
    return [variance + mean * mean for mean, variance in pairs]


# NS406: values that are no numbers.


def not_finite(statistics: Statistics) -> Iterator[StatisticsFinding]:
    """Yield NS406: the first point in order of execution where NaN or infinity appears."""
    for point in _points(statistics, "before", "after"):
        peaks = point.moments.peak
        wrong = next((n for n, value in enumerate(peaks) if not math.isfinite(value)), None)
        if wrong is None:
            continue
        where = entry_in_words(statistics, point.norm, wrong)
        channel = point.moments.peak_channel[wrong]
        block = f" in {point.norm.block}" if point.norm.block else ""
        yield StatisticsFinding(
            code="NS406",
            severity="error",
            where=point.norm.name,
            message=f"a value that is not finite ({peaks[wrong]}) appears first {point.word} "
            f"{point.norm.name}{block}, at {where}, channel {channel}",
            token=token_at(statistics, point.norm, wrong),
            channel=channel,
            first=place_of(point.norm),
        )
        return
