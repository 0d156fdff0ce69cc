"""Statistics -> values and tokens that stand out from the rest: NS401 and NS402."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normscope.activations.finding_words import (
    other_norms,
    place_of,
    rounded,
    span_in_words,
    token_at,
    tokens_in_words,
)
from normscope.statistics import NormStatistics, Statistics, StatisticsFinding, Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Massive:
    norm: NormStatistics
    token: int
    peak: float
    channel: int
    share: float


def massive_activations(
    statistics: Statistics, thresholds: Thresholds
) -> Iterator[StatisticsFinding]:
    """Yield NS401, one finding a channel, with the first and the last block that sees it."""
    by_channel: dict[tuple[str, int], list[_Massive]] = {}
    for norm in statistics.norms:
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
            f"{rounded(worst.share)} times the median magnitude; "
            f"{span_in_words(found[0].norm, found[-1].norm)}",
            token=token_at(statistics, worst.norm, worst.token),
            channel=channel,
            first=place_of(found[0].norm),
            last=place_of(found[-1].norm),
        )


def _massive_in(norm: NormStatistics, thresholds: Thresholds) -> Iterator[_Massive]:
    before = norm.before
    if before is None or not before.magnitude or norm.rows_per_token != 1:
        return
    for token, (peak, channel) in enumerate(zip(before.peak, before.peak_channel, strict=True)):
        share = peak / before.magnitude
        massive = thresholds.massive < peak < math.inf  # what is not finite is NS406's
        if massive and share > thresholds.massive_share:
            yield _Massive(norm=norm, token=token, peak=peak, channel=channel, share=share)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sink:
    norm: NormStatistics
    token: int
    variance: float
    channel: int
    share: float


def sinks(statistics: Statistics, thresholds: Thresholds) -> Iterator[StatisticsFinding]:
    """Yield NS402, one finding a token (one id, wherever it stands)."""
    found: dict[tuple[str, int], list[_Sink]] = {}
    for norm in statistics.norms:
        tokens = statistics.tokens_of(norm)
        for sink in _sinks_before(norm, thresholds):
            number = tokens[sink.token].id
            key = (norm.stream, sink.token if number is None else number)
            found.setdefault(key, []).append(sink)
    for one in found.values():
        yield _sink(statistics, one)


def _sink(statistics: Statistics, found: Sequence[_Sink]) -> StatisticsFinding:
    """Return the finding at the norm where the token stands out most."""
    worst = max(found, key=lambda sink: sink.share)
    others = len({sink.norm.name for sink in found}) - 1
    tokens = tokens_in_words(statistics, worst.norm, [sink.token for sink in found])
    stand = "stands" if len({sink.token for sink in found}) == 1 else "stand"
    more = ""
    if others:
        span = span_in_words(found[0].norm, found[-1].norm)
        more = f"; also before {other_norms(others)}, {span}"
    return StatisticsFinding(
        code="NS402",
        severity="warning",
        where=worst.norm.name,
        message=f"{tokens} {stand} out: variance {rounded(worst.variance)} before "
        f"{worst.norm.name}, {rounded(worst.share)} times the median token's, "
        f"largest in channel {worst.channel}{more}",
        token=token_at(statistics, worst.norm, worst.token),
        channel=worst.channel,
        first=place_of(found[0].norm),
        last=place_of(found[-1].norm),
    )


def _sinks_before(norm: NormStatistics, thresholds: Thresholds) -> Iterator[_Sink]:
    before = norm.before
    # The median of one or two tokens says nothing of a third.
    if before is None or norm.rows_per_token != 1 or len(before.variance) < 3:
        return
    usual = before.summary().median
    for token, variance in enumerate(before.variance):
        if usual > 0 and variance > thresholds.sink * usual:
            yield _Sink(
                norm=norm,
                token=token,
                variance=variance,
                channel=before.peak_channel[token],
                share=variance / usual,
            )
