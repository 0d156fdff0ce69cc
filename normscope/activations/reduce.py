"""Activation -> mean, variance and peak of each of its rows, in few passes over memory.

What needs the activation runs inside the hook, in as few operations as possible; what follows from
one number a row waits until the forward pass is over.
"""

from dataclasses import dataclass

import numpy as np
import torch

from normscope.activations.passes import Extremes, take_passes
from normscope.activations.sums import Exact, Sums, checked_sums, exact_moments
from normscope.activations.wide import Peak, take_peak, take_sums

_FEW_THREADS = 2
_FEW_VALUES = 1 << 19
"""Up to so many threads or values, one thread of NumPy is done sooner than torch's."""
_LONGEST_ROW = 1 << 14
"""Up to this length a float32 sum of squares errs by less than 1e-6; longer rows take float64."""

_MASSIVE = 100.0
"""Only beside larger values is it asked what an ordinary one is (NS401)."""
_SAMPLE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoments:
    """One entry a row, in the shape of the axes that are not reduced."""

    mean: torch.Tensor
    variance: torch.Tensor
    peak: torch.Tensor
    channel: torch.Tensor
    """Index of the peak within the row."""
    length: int
    """How many values a row has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedRows:
    """What the passes over an activation left, still to be put together."""

    spread: Sums | Exact
    peak: Extremes | Peak
    lead: torch.Size
    length: int

    def moments(self) -> RowMoments:
        """Return the moments, in the shape of the axes that were not reduced."""
        mean, variance = self.spread.mean_and_variance(self.length)
        peak, place = self.peak.value_and_place()
        return RowMoments(
            mean=mean.reshape(self.lead),
            variance=variance.reshape(self.lead),
            peak=peak.reshape(self.lead),
            channel=place.reshape(self.lead),
            length=self.length,
        )

    def exceeds(self, limit: float) -> bool:
        """Tell whether a value is over `limit`."""
        if self.spread.largest <= limit:
            return False
        return float(self.peak.value_and_place()[0].amax()) > limit


def rows_of(value: torch.Tensor, axes: tuple[int, ...], groups: int | None) -> torch.Tensor:
    """Return `value` with the reduced axes last and flattened into one: [..., features].

    With `groups` the first of the axes is split into that many rows.
    """
    if axes == (-1,) and not groups:
        return value
    if groups:
        first = axes[0] % value.dim()
        value = value.unflatten(first, (groups, value.shape[first] // groups))
        rest = (axis % (value.dim() - 1) for axis in axes)
        axes = tuple(axis + 1 if axis >= first else axis for axis in rest)
    positive = [axis % value.dim() for axis in axes]
    last = list(range(value.dim() - len(positive), value.dim()))
    if positive != last:
        value = value.movedim(positive, last)
    return value if len(positive) == 1 else value.flatten(-len(positive))


def reduce_rows(rows: torch.Tensor) -> ReducedRows:
    """Reduce each row of [..., features]; half precision is upcast first."""
    lead, length = rows.shape[:-1], rows.shape[-1]
    rows = rows.detach().reshape(-1, length)
    with np.errstate(all="ignore"):  # infinities and NaN are results here
        spread, peak = _by_numpy(rows) if _suits_numpy(rows) else _by_torch(rows)
    return ReducedRows(spread=spread, peak=peak, lead=lead, length=length)


def _suits_numpy(rows: torch.Tensor) -> bool:
    few = torch.get_num_threads() <= _FEW_THREADS or rows.numel() <= _FEW_VALUES
    return rows.is_cpu and few


def _by_numpy(rows: torch.Tensor) -> tuple[Sums | Exact, Extremes]:
    passes = take_passes(rows)
    if rows.shape[-1] > _LONGEST_ROW:
        return exact_moments(rows), passes.extremes
    return checked_sums(rows, passes.total, passes.square), passes.extremes


def _by_torch(rows: torch.Tensor) -> tuple[Sums | Exact, Peak]:
    rows = rows if rows.dtype is torch.float64 else rows.float()
    if rows.is_cpu and rows.shape[-1] > _LONGEST_ROW:
        return exact_moments(rows), take_peak(rows)
    return take_sums(rows), take_peak(rows)


def median_magnitude(rows: torch.Tensor, reduced: ReducedRows) -> torch.Tensor | None:
    """Return the median absolute value of [..., features] where a peak is massive, else None.

    Taken of an even sample of the values where there are many.
    """
    if not rows.is_cpu or not reduced.exceeds(_MASSIVE):
        return None
    values = rows.reshape(-1)
    sample = values[:: max(1, values.numel() // _SAMPLE)]
    return sample.abs().float().median()
