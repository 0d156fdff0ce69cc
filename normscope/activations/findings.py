"""Statistics -> what stands out in them, by the rules NS401 to NS406."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normscope.activations.finding_words import (
    entry_in_words,
    other_norms,
    place_of,
    rounded,
    tokens_in_words,
)
from normscope.statistics import (
    Moments,
    NormStatistics,
    Statistics,
    StatisticsFinding,
    summarize,
)

LARGEST_FLOAT16 = 65504.0
LARGEST_SQUARED_IN_FLOAT16 = 255.0
_HALF = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something stands out."""

    massive: float = 100.0
    """Smallest value that can be a massive activation (NS401)."""
    massive_share: float = 1000.0
    """Times the median magnitude of its tensor (NS401)."""
    massive_channels: int = 3
    """In more channels than these, large values are no outliers (NS401)."""
    sink: float = 100.0
    """Times the median token's variance (NS402)."""
    eps_share: float = 0.01
    """Part of the denominator that is eps (NS404)."""


DEFAULTS = Thresholds()


def find_in_statistics(
    statistics: Statistics, thresholds: Thresholds = DEFAULTS
) -> tuple[StatisticsFinding, ...]:
    """Return every finding, by code and then in order of the norms."""
    return (
        *_massive_activations(statistics, thresholds),
        *_sinks(statistics, thresholds),
        *_too_large_for_float16(statistics),
        *_large_eps(statistics, thresholds),
        *_not_finite(statistics),
    )


# NS401: massive activations.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Massive:
    norm: NormStatistics
    token: int
    peak: float
    channel: int
    share: float


def _massive_activations(
    statistics: Statistics, thresholds: Thresholds
) -> Iterator[StatisticsFinding]:
    """One finding a channel, with the first and the last norm that sees it."""
    by_channel: dict[tuple[str, int], list[_Massive]] = {}
    for norm in _measured(statistics):
        found = list(_massive_in(norm, thresholds))
        if len({item.channel for item in found}) <= thresholds.massive_channels:
            for item in found:
                by_channel.setdefault((norm.stream, item.channel), []).append(item)
    for (_, channel), found in by_channel.items():
        worst = max(found, key=lambda item: item.peak)
        tokens = tokens_in_words(statistics, worst.norm, [item.token for item in found])
        yield StatisticsFinding(
            code="NS401",
            severity="warning",
            where=found[0].norm.name,
            message=f"massive activation in channel {channel} at {tokens}: "
            f"up to {rounded(worst.peak)} before {worst.norm.name}, "
            f"{rounded(worst.share)} times the median magnitude; {_span(found)}",
        )


def _massive_in(norm: NormStatistics, thresholds: Thresholds) -> Iterator[_Massive]:
    before = norm.before
    if before is None or not before.magnitude or norm.rows_per_token != 1:
        return
    for token, (peak, channel) in enumerate(zip(before.peak, before.peak_channel, strict=True)):
        share = peak / before.magnitude
        if peak > thresholds.massive and share > thresholds.massive_share:
            yield _Massive(norm=norm, token=token, peak=peak, channel=channel, share=share)


def _span(found: Sequence[_Massive]) -> str:
    first, last = found[0].norm, found[-1].norm
    if first.name == last.name:
        return f"seen before {first.name} alone"
    return f"from {place_of(first)} to {place_of(last)}"


# NS402: attention sinks.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sink:
    norm: NormStatistics
    token: int
    variance: float
    share: float


def _sinks(statistics: Statistics, thresholds: Thresholds) -> Iterator[StatisticsFinding]:
    """One finding a token (one id, wherever it stands), at the norm where it stands out most."""
    found: dict[tuple[str, int], list[_Sink]] = {}
    for norm in _measured(statistics):
        tokens = statistics.tokens_of(norm)
        for sink in _sinks_before(norm, thresholds):
            number = tokens[sink.token].id
            found.setdefault((norm.stream, sink.token if number is None else number), []).append(
                sink
            )
    for sinks in found.values():
        worst = max(sinks, key=lambda sink: sink.share)
        norms = dict.fromkeys(sink.norm.name for sink in sinks)
        here = tokens_in_words(statistics, worst.norm, [sink.token for sink in sinks])
        yield StatisticsFinding(
            code="NS402",
            severity="warning",
            where=worst.norm.name,
            message=f"{here} stands out: variance {rounded(worst.variance)} before "
            f"{worst.norm.name}, {rounded(worst.share)} times the median token's"
            + (f"; also before {other_norms(len(norms) - 1)}" if len(norms) > 1 else ""),
        )


def _sinks_before(norm: NormStatistics, thresholds: Thresholds) -> Iterator[_Sink]:
    before = norm.before
    # The median of one or two tokens says nothing of a third.
    if before is None or norm.rows_per_token != 1 or len(before.variance) < 3:
        return
    usual = summarize(before.variance).median
    for token, variance in enumerate(before.variance):
        if usual > 0 and variance > thresholds.sink * usual:
            yield _Sink(norm=norm, token=token, variance=variance, share=variance / usual)


# NS403: float16.


def _too_large_for_float16(statistics: Statistics) -> Iterator[StatisticsFinding]:
    """The first norm whose input is out of range, and how large it becomes."""
    too_large = [norm for norm in _measured(statistics) if _greatest(norm) > LARGEST_FLOAT16]
    if too_large:
        yield _out_of_range(statistics, too_large, "does not fit float16 (largest 65,504)", "error")
    squared = [
        norm
        for norm in _measured(statistics)
        if norm.statistics_dtype in _HALF and _greatest(norm) > LARGEST_SQUARED_IN_FLOAT16
    ]
    if squared:
        what = "has a square that does not fit float16, and this norm squares in half precision"
        yield _out_of_range(statistics, squared, what, "warning")


def _out_of_range(
    statistics: Statistics, norms: Sequence[NormStatistics], what: str, severity: str
) -> StatisticsFinding:
    first, worst = norms[0], max(norms, key=_greatest)
    before = first.before
    assert before is not None
    token = max(range(len(before.peak)), key=lambda index: _finite(before.peak[index]))
    more = "" if worst is first else f"; up to {rounded(_greatest(worst))} before {worst.name}"
    return StatisticsFinding(
        code="NS403",
        severity=severity,
        where=first.name,
        message=f"{rounded(_greatest(first))} at {entry_in_words(statistics, first, token)}, "
        f"channel {before.peak_channel[token]}, before {first.name} {what}{more}",
    )


def _greatest(norm: NormStatistics) -> float:
    return max((_finite(value) for value in norm.before.peak), default=0.0) if norm.before else 0.0


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


# NS404: eps.


def _large_eps(statistics: Statistics, thresholds: Thresholds) -> Iterator[StatisticsFinding]:
    """One finding for all norms, with the one where eps weighs most."""
    shares = {
        index: found
        for index, norm in enumerate(statistics.norms)
        if (found := _eps_shares(norm)) and max(found) > thresholds.eps_share
    }
    if not shares:
        return
    index, worst = max(shares.items(), key=lambda item: max(item[1]))
    norm, token = statistics.norms[index], worst.index(max(worst))
    limit = f"{thresholds.eps_share:.0%}"
    yield StatisticsFinding(
        code="NS404",
        severity="note",
        where=norm.name,
        message=f"eps {norm.eps:g} is {worst[token]:.1%} of the denominator of {norm.name} at "
        f"{entry_in_words(statistics, norm, token)}; over {limit} in "
        + ("this norm alone" if len(shares) == 1 else f"{len(shares)} norms"),
    )


def _eps_shares(norm: NormStatistics) -> list[float]:
    """Return eps / (var + eps) for each token."""
    eligible = norm.kind in {"LayerNorm", "RMSNorm"} and norm.eps_position == "inside"
    if norm.before is None or not norm.eps or not eligible or norm.rows_per_token is None:
        return []
    return [norm.eps / (square + norm.eps) for square in _squares(norm.kind, norm.before)]


def _squares(kind: str, moments: Moments) -> list[float]:
    """Return what stands under the root: the variance, for RMS with the mean's square."""
    if kind == "LayerNorm":
        return list(moments.variance)
    return [
        variance + mean * mean
        for mean, variance in zip(moments.mean, moments.variance, strict=True)
    ]


# NS406: values that are no numbers.


def _not_finite(statistics: Statistics) -> Iterator[StatisticsFinding]:
    """The first point in order of execution where NaN or infinity appears."""
    for norm in _measured(statistics):
        for point, moments in (("before", norm.before), ("after", norm.after)):
            wrong = [
                token
                for token, value in enumerate(moments.peak if moments is not None else ())
                if not math.isfinite(value)
            ]
            if moments is not None and wrong:
                where = entry_in_words(statistics, norm, wrong[0])
                yield StatisticsFinding(
                    code="NS406",
                    severity="error",
                    where=norm.name,
                    message=f"a value that is not finite ({moments.peak[wrong[0]]}) appears first "
                    f"{point} {norm.name}, at {where}",
                )
                return


def _measured(statistics: Statistics) -> Iterator[NormStatistics]:
    return (norm for norm in statistics.norms if norm.before is not None)
