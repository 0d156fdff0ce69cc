"""Statistics -> whether the residual stream fits float16, and where it no longer does."""

from collections.abc import Iterator
from dataclasses import dataclass

from normscope.inspection import Role
from normscope.statistics import Moments, NormStatistics, Quantity, Statistics, Token

LARGEST_FLOAT16 = 65504.0
_WIDE = frozenset({"float32", "float64"})
"""Only such a run holds what float16 would lose."""
_READERS = frozenset({Role.BRANCH_INPUT, Role.TRUNK, Role.FINAL})
"""Norms that read the stream itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPeak:
    """The largest absolute value of the stream where a norm shows it."""

    norm: NormStatistics
    point: str
    """`before` or `after`."""
    value: float
    """NaN where one of the values is."""
    entry: int
    channel: int

    def fits(self) -> bool:
        """Tell whether float16 holds it; neither NaN nor infinity does."""
        return self.value <= LARGEST_FLOAT16


@dataclass(frozen=True, slots=True, kw_only=True)
class Float16Fit:
    """Whether a run of the stream in float16 would overflow."""

    largest: StreamPeak
    first: StreamPeak | None
    """The first in order of execution that does not fit."""
    token: Token | None
    """Of the largest; None where rows are no tokens."""


def float16_fit(statistics: Statistics) -> Float16Fit | None:
    """Return whether the stream fits float16, as far as norms read it in a run of float32 or wider.

    None for another dtype, and where what was seen fits but is not all: some norms were left out,
    or some block's norms do not read the stream.
    """
    peaks = list(_peaks(statistics))
    if statistics.dtype not in _WIDE or not peaks:
        return None
    first = next((peak for peak in peaks if not peak.fits()), None)
    if first is None and (statistics.pattern or not _is_read_in_every_block(statistics)):
        return None
    largest = max(peaks, key=_nan_last)
    tokens = statistics.tokens_of(largest.norm)
    token = tokens[largest.entry] if largest.entry < len(tokens) else None
    return Float16Fit(largest=largest, first=first, token=token)


def _peaks(statistics: Statistics) -> Iterator[StreamPeak]:
    """Yield the peaks in order of execution; what a trunk norm gives is the stream as well."""
    for norm in statistics.norms:
        several = norm.rows_per_token is not None and norm.rows_per_token > 1
        if norm.role not in _READERS or several:  # a norm of heads reads no stream
            continue
        after = norm.after if norm.role is Role.TRUNK else None
        for point, moments in (("before", norm.before), ("after", after)):
            if moments is not None and moments.peak:
                yield _peak(norm, point, moments)


def _peak(norm: NormStatistics, point: str, moments: Moments) -> StreamPeak:
    summary = moments.summary(Quantity.PEAK)
    entry = summary.at_token or 0
    return StreamPeak(
        norm=norm,
        point=point,
        value=summary.maximum,
        entry=entry,
        channel=moments.peak_channel[entry],
    )


def _nan_last(peak: StreamPeak) -> tuple[bool, float]:
    wrong = peak.value != peak.value
    return wrong, 0.0 if wrong else peak.value


def _is_read_in_every_block(statistics: Statistics) -> bool:
    blocks = {norm.block for norm in statistics.norms if norm.block is not None}
    seen = {norm.block for norm in statistics.norms if norm.role in _READERS and norm.before}
    return blocks <= seen
