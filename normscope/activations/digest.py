"""The rows of one norm, chunk by chunk -> their summary and the entries that stand out.

What is kept does not grow with the run: histograms, moments merged in float64, and some 80 entries.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from normscope.activations.chunks import Columns, NormRows, joined
from normscope.activations.moments import Accumulated, merge_moments
from normscope.activations.notable import notable_entries
from normscope.activations.quantiles import Quantiles
from normscope.statistics import (
    KeptEntries,
    Moments,
    MomentsSummary,
    NormStatistics,
    PointSummary,
    Pooled,
    Token,
)

_NO_ID = -1


@dataclass(slots=True)
class _PointDigest:
    """One point of a norm."""

    mean: Quantiles = field(default_factory=Quantiles)
    variance: Quantiles = field(default_factory=Quantiles)
    peak: Quantiles = field(default_factory=Quantiles)
    together: Accumulated = field(default_factory=Accumulated)

    def add(self, columns: Columns) -> None:
        self.mean.add(columns.mean)
        self.variance.add(columns.variance)
        self.peak.add(columns.peak)
        self.together = merge_moments(self.together, _pooled(columns))

    def moments(self, kept: Columns, magnitude: float | None) -> Moments:
        """Return the kept entries and the summary of all."""
        all_of_them = self.together
        return Moments(
            mean=tuple(kept.mean.tolist()),
            variance=tuple(kept.variance.tolist()),
            peak=tuple(kept.peak.tolist()),
            peak_channel=tuple(kept.channel.tolist()),
            magnitude=magnitude,
            whole=PointSummary(
                mean=_summary(self.mean, kept.mean),
                variance=_summary(self.variance, kept.variance),
                peak=_summary(self.peak, kept.peak),
                pooled=Pooled(
                    count=all_of_them.count, mean=all_of_them.mean, variance=all_of_them.variance
                ),
            ),
        )


def _pooled(columns: Columns) -> Accumulated:
    with np.errstate(all="ignore"):  # infinities and NaN are results here
        mean = float(columns.mean.mean())
        spread = float(columns.variance.mean() + np.square(columns.mean - mean).mean())
    return Accumulated(count=len(columns), mean=mean, variance=spread)


def _summary(quantiles: Quantiles, kept: np.ndarray) -> MomentsSummary:
    """The maximum is among the entries that are kept, whatever it is."""
    values = kept.tolist()
    at = max(range(len(values)), key=lambda index: (_nan_last(values[index]), -index))
    return MomentsSummary(
        median=quantiles.quantile(0.5),
        p99=quantiles.quantile(0.99),
        maximum=values[at],
        at_token=at,
    )


def _nan_last(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


@dataclass(slots=True)
class NormDigest:
    """One norm over a whole run."""

    _before: _PointDigest = field(default_factory=_PointDigest)
    _after: _PointDigest = field(default_factory=_PointDigest)
    _kept: NormRows | None = None
    _places: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _tokens: list[Token] = field(default_factory=list)
    _seen: int = 0

    def add(self, rows: NormRows, tokens: tuple[Token, ...]) -> None:
        """Take the rows of the next tokens; no tokens where the rows are none."""
        self._before.add(rows.before)
        self._after.add(rows.after)
        fresh = np.arange(self._seen, self._seen + len(rows.before))
        self._seen += len(rows.before)
        self._choose(rows, np.concatenate([self._places, fresh]), tokens)

    def _choose(self, rows: NormRows, places: np.ndarray, tokens: tuple[Token, ...]) -> None:
        """Keep what stands out among what stood out so far and what is new."""
        old = self._kept
        before = rows.before if old is None else joined([old.before, rows.before])
        after = rows.after if old is None else joined([old.after, rows.after])
        known = [*self._tokens, *tokens]
        chosen = notable_entries(before, after, _ids(known, len(places)))
        self._kept = NormRows(before=before.taken(chosen), after=after.taken(chosen))
        self._places = places[chosen]
        self._tokens = [known[index] for index in chosen.tolist()] if known else []

    def as_statistics(
        self, described: NormStatistics, magnitudes: tuple[float | None, float | None]
    ) -> NormStatistics:
        """Return the norm with the summary of its points and the entries that are kept."""
        if self._kept is None:
            return described
        return replace(
            described,
            before=self._before.moments(self._kept.before, magnitudes[0]),
            after=self._after.moments(self._kept.after, magnitudes[1]),
            kept=KeptEntries(places=tuple(self._places.tolist()), tokens=tuple(self._tokens)),
        )


def _ids(tokens: list[Token], count: int) -> np.ndarray:
    """Rows that are no tokens, and tokens without an id, are each their own."""
    if len(tokens) != count:
        return np.arange(count)
    own = (_NO_ID - index if token.id is None else token.id for index, token in enumerate(tokens))
    return np.fromiter(own, dtype=np.int64, count=count)
