"""Activation -> mean, variance and peak of each of its rows, in few passes over memory.

What needs the activation runs inside the hook, in as few operations as possible; what follows from
one number a row waits until the forward pass is over.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from normscope.activations.passes import BlockPeak, KeyPeak, take_passes
from normscope.activations.shelf import Shelf
from normscope.activations.sums import Exact, Sums, checked_sums, exact_moments
from normscope.activations.wide import Peak, take_moments, take_peak

_CACHED = 1 << 19
"""Values that are read several times before the next ones."""
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


@dataclass(slots=True)
class ReducedPart:
    """What the passes over some rows left, still to be put together."""

    spread: Sums | Exact
    peak: BlockPeak | KeyPeak | Peak

    def exceeds(self, limit: float) -> bool:
        """Tell whether a value is over `limit`."""
        if self.spread.largest <= limit:
            return False
        return float(self.peak.value_and_place()[0].amax()) > limit


@dataclass(slots=True)
class ReducedRows:
    """What the passes over an activation left, part by part."""

    parts: tuple[ReducedPart, ...]
    lead: torch.Size
    length: int

    def moments(self) -> RowMoments:
        """Return the moments, in the shape of the axes that were not reduced."""
        spreads = [part.spread.mean_and_variance(self.length) for part in self.parts]
        peaks = [part.peak.value_and_place() for part in self.parts]
        mean, variance = (self._joined(values) for values in zip(*spreads, strict=True))
        peak, place = (self._joined(values) for values in zip(*peaks, strict=True))
        return RowMoments(
            mean=mean, variance=variance, peak=peak, channel=place, length=self.length
        )

    def _joined(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return (values[0] if len(values) == 1 else torch.cat(list(values))).reshape(self.lead)

    def move_to(self, shelf: Shelf) -> None:
        """Hold on to no memory but the shelf's; what an accelerator holds stays there."""
        for part in self.parts:
            if not isinstance(part.peak, Peak):
                part.spread.move_to(shelf)
                part.peak.move_to(shelf)

    def exceeds(self, limit: float) -> bool:
        """Tell whether a value is over `limit`."""
        return any(part.exceeds(limit) for part in self.parts)


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
    if not rows.is_cpu:
        return ReducedRows((_on_accelerator(rows),), lead, length)
    if rows.numel() <= _CACHED:
        return ReducedRows((_on_cpu(rows),), lead, length)
    # In parts of one size: a small rest would cost as many operations again.
    count = round(rows.numel() / _CACHED)
    return ReducedRows(tuple(_on_cpu(part) for part in rows.chunk(count)), lead, length)


def _on_cpu(rows: torch.Tensor) -> ReducedPart:
    rows = rows.contiguous()  # a part of an activation that was turned around
    passes = take_passes(rows)
    if rows.shape[-1] > _LONGEST_ROW:
        return ReducedPart(exact_moments(rows), passes.peak)
    return ReducedPart(checked_sums(rows, passes.total, passes.norm), passes.peak)


def _on_accelerator(rows: torch.Tensor) -> ReducedPart:
    wide = rows if rows.dtype is torch.float64 else rows.float()
    return ReducedPart(take_moments(wide), take_peak(wide))


def median_magnitude(rows: torch.Tensor, reduced: ReducedRows) -> torch.Tensor | None:
    """Return the median absolute value of [..., features] where a peak is massive, else None.

    Taken of an even sample of the values where there are many. On an accelerator it is always
    taken: asking for the peak would wait for the device.
    """
    if rows.is_cpu and not reduced.exceeds(_MASSIVE):
        return None
    values = rows.detach().reshape(-1)
    sample = values[:: max(1, values.numel() // _SAMPLE)]
    return sample.abs().float().median()
