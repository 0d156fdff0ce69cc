"""Activation -> mean, variance and peak of each of its rows.

What needs the activation runs inside the hook; what follows from one number a row waits until the
forward pass is over.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from normscope.activations.compiled import knows, measure_rows
from normscope.activations.shelf import Room, Shelf
from normscope.activations.torch_moments import (
    TensorMoments,
    measure_on_accelerator,
    measure_on_cpu,
)

_CACHED = 1 << 19
"""Values that are read several times before the next ones."""

_SAMPLE = 1 << 14
"""Values of which a median is taken, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoments:
    """One entry a row, in the shape of the axes that are not reduced."""

    mean: np.ndarray
    """Float64, as variance and peak."""
    variance: np.ndarray
    peak: np.ndarray
    channel: np.ndarray
    """Index of the peak within the row."""
    length: int
    """How many values a row has."""


@dataclass(frozen=True, slots=True)
class ReducedRows:
    """What was taken of an activation, still to be put into shape."""

    found: Room | TensorMoments
    """On a shelf, or on the accelerator that holds the activation."""
    shape: torch.Size
    """[..., features], of the rows."""

    def moments(self) -> RowMoments:
        """Return the moments, in the shape of the axes that were not reduced."""
        *lead, length = self.shape
        mean, variance, peak, channel = (column.reshape(lead) for column in self.found.columns())
        return RowMoments(mean=mean, variance=variance, peak=peak, channel=channel, length=length)

    def largest(self) -> float:
        """Return the largest peak."""
        return float(self.found.columns()[2].max())


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


def reduce_rows(rows: torch.Tensor, shelf: Shelf) -> ReducedRows:
    """Reduce each row of [..., features], in float32 at least; a CPU's are put on `shelf`."""
    length = rows.shape[-1]
    if not rows.is_cpu:
        return ReducedRows(measure_on_accelerator(rows.detach().reshape(-1, length)), rows.shape)
    found = measure_rows(rows.detach().contiguous(), shelf) if knows(rows.dtype) else None
    address = _in_torch(rows, shelf) if found is None else found[0]
    return ReducedRows(Room(shelf, address, rows.numel() // length), rows.shape)


def _in_torch(rows: torch.Tensor, shelf: Shelf) -> int:
    """Measure part by part, each in the cache; return where the moments lie."""
    rows = rows.detach().reshape(-1, rows.shape[-1])
    room = Room(shelf, shelf.take(rows.shape[0]), rows.shape[0])
    mean, variance, peak, place = room.words()
    step = max(1, _CACHED // rows.shape[-1])
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        found = measure_on_cpu(rows[part]).columns()
        mean[part], variance[part], peak[part] = found[:3]
        place.view(np.int64)[part] = found[3]
    return room.address


def median_magnitude(value: torch.Tensor) -> torch.Tensor:
    """Return the median absolute value of [..., features].

    Where there are many, it is that of a sample; its step has no factor in common with a row, so
    that each feature of a token has its share.
    """
    values = value.detach().reshape(-1)
    step = max(1, values.numel() // _SAMPLE)
    while math.gcd(step, value.shape[-1]) > 1:
        step += 1
    return values[::step].abs().float().median()
