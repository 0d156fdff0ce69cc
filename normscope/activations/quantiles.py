"""Many values -> their quantiles, at constant memory, with a known error; knows no torch.

A histogram over bins whose edges grow by a constant factor (as in DDSketch, Masson, Rim and Lee
2019): each value is known to `QUANTILE_ERROR` of itself. The counts are whole numbers, so that the
answer does not depend on the order of the values or on how they were grouped.
"""

import math
from dataclasses import dataclass, field

import numpy as np

_BINS = 128
"""To each doubling."""
_GROWTH = 2.0 ** (1 / _BINS)
QUANTILE_ERROR = (_GROWTH - 1) / (_GROWTH + 1)
"""Largest relative error of a quantile: 0.27%."""


@dataclass(slots=True)
class _Bins:
    """Counts of positive values; the first bin is number `start`."""

    start: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        numbers = np.ceil(np.log2(values) * _BINS).astype(np.int64)
        self._reach(int(numbers.min()), int(numbers.max()))
        fresh = np.bincount(numbers - self.start, minlength=len(self.counts))
        self.counts += fresh

    def _reach(self, low: int, high: int) -> None:
        if not len(self.counts):
            self.start = low
        below = max(0, self.start - low)
        above = max(0, high - (self.start + len(self.counts) - 1))
        if below or above:
            self.counts = np.pad(self.counts, (below, above))
            self.start -= below

    def value(self, rank: int) -> float:
        """Return the value of a rank, 0 for the least."""
        place = int(np.searchsorted(np.cumsum(self.counts), rank, side="right"))
        lower = 2.0 ** ((self.start + place - 1) / _BINS)
        return float(2 * lower * _GROWTH / (_GROWTH + 1))

    def __len__(self) -> int:
        return int(self.counts.sum())


@dataclass(slots=True)
class Quantiles:
    """A growing set of values, of which only the counts are kept."""

    _below: _Bins = field(default_factory=_Bins)
    """Values under zero, by their size."""
    _above: _Bins = field(default_factory=_Bins)
    _zeros: int = 0
    _infinite: list[int] = field(default_factory=lambda: [0, 0])
    """How many are -infinity, and how many +infinity."""
    _nans: int = 0
    _least: float = math.inf
    _greatest: float = -math.inf

    def add(self, values: np.ndarray) -> None:
        """Count further values."""
        values = values.astype(np.float64, copy=False)
        finite = values[np.isfinite(values)]
        self._above.add(finite[finite > 0])
        self._below.add(-finite[finite < 0])
        self._zeros += int((finite == 0).sum())
        self._nans += int(np.isnan(values).sum())
        self._infinite[0] += int((values == -np.inf).sum())
        self._infinite[1] += int((values == np.inf).sum())
        if len(finite):
            self._least = min(self._least, float(finite.min()))
            self._greatest = max(self._greatest, float(finite.max()))

    def __len__(self) -> int:
        finite = len(self._below) + self._zeros + len(self._above)
        return finite + sum(self._infinite) + self._nans

    def quantile(self, share: float) -> float:
        """Return a quantile, linear between ranks; NaN counts as greater than every number."""
        if not len(self):
            return math.nan
        position = share * (len(self) - 1)
        low = math.floor(position)
        below = self._ranked(low)
        above = self._ranked(min(low + 1, len(self) - 1))
        if below == above or position == low:
            return below
        return below + (above - below) * (position - low)

    def _ranked(self, rank: int) -> float:
        counts = (self._infinite[0], len(self._below), self._zeros, len(self._above))
        for number, count in enumerate(counts):
            if rank < count:
                return self._within(number, rank)
            rank -= count
        return math.inf if rank < self._infinite[1] else math.nan

    def _within(self, number: int, rank: int) -> float:
        if number == 0:
            return -math.inf
        if number == 2:
            return 0.0
        found = (
            self._above.value(rank)
            if number == 3
            else -self._below.value(len(self._below) - 1 - rank)
        )
        # The ends are known, and no value lies beyond them.
        return min(max(found, self._least), self._greatest)
