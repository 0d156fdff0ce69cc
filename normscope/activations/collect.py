"""Row moments of one forward pass after another -> the moments of each norm, token by token."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch

from normscope.activations.chunks import Columns, joined
from normscope.activations.layouts import Extent, RowLayout
from normscope.activations.moments import Accumulated, merge_moments
from normscope.activations.reduce import RowMoments


@dataclass(slots=True)
class Entries:
    """The rows at one point of one norm that were read and not yet taken."""

    waiting: list[Columns] = field(default_factory=list)
    merged: list[Accumulated] = field(default_factory=list)
    """Rows that get further values in every pass."""

    def extend(self, rows: RowMoments) -> None:
        """Append the entries of other rows."""
        self.waiting.append(as_columns(rows))

    def merge(self, rows: RowMoments) -> None:
        """Join further values of the same rows (the channels of a batch norm)."""
        fresh = _accumulated(as_columns(rows), rows.length)
        if self.merged:
            pairs = zip(self.merged, fresh, strict=True)
            fresh = [merge_moments(old, new) for old, new in pairs]
        self.merged = fresh

    def taken(self, order: np.ndarray | None = None) -> Columns | None:
        """Return what waits, in another order, and let go of it; None where nothing does."""
        if not self.waiting:
            return None
        columns = joined(self.waiting)
        self.waiting.clear()
        return columns if order is None else columns.taken(order)

    def joined_rows(self) -> Columns | None:
        """Return the rows that were merged so far; None where there are none."""
        return _of_accumulated(self.merged) if self.merged else None


def as_columns(rows: RowMoments) -> Columns:
    """Return the moments of some rows, one entry a row."""
    return Columns(
        mean=rows.mean.ravel(),
        variance=rows.variance.ravel(),
        peak=rows.peak.ravel(),
        channel=rows.channel.ravel(),
    )


def _accumulated(columns: Columns, count: int) -> list[Accumulated]:
    rows = zip(
        columns.mean.tolist(),
        columns.variance.tolist(),
        columns.peak.tolist(),
        columns.channel.tolist(),
        strict=True,
    )
    return [
        Accumulated(count=count, mean=mean, variance=variance, peak=peak, peak_channel=channel)
        for mean, variance, peak, channel in rows
    ]


def _of_accumulated(items: list[Accumulated]) -> Columns:
    return Columns(
        mean=np.array([item.mean for item in items]),
        variance=np.array([item.variance for item in items]),
        peak=np.array([item.peak for item in items]),
        channel=np.array([item.peak_channel for item in items]),
    )


def token_rows(
    rows: RowMoments, layout: RowLayout, extent: Extent, counted: torch.Tensor
) -> RowMoments | None:
    """Return the rows as [tokens, rows of one token], without the tokens that do not count.

    `counted` is [batch, sequence] booleans. None where the shape does not fit the layout.
    """
    sizes = layout.sizes(rows.mean.shape, extent)
    if sizes is None:
        return None
    kept, order = counted.flatten().cpu().numpy(), layout.order()

    def arranged(values: np.ndarray) -> np.ndarray:
        ordered = values.reshape(sizes).transpose(order)
        return np.asarray(ordered.reshape(extent.batch * extent.length, -1)[kept])

    return replace(
        rows,
        mean=arranged(rows.mean),
        variance=arranged(rows.variance),
        peak=arranged(rows.peak),
        channel=arranged(rows.channel),
    )


def averaged(rows: RowMoments) -> RowMoments:
    """Return one entry a token: mean and variance averaged over its rows, the largest peak."""
    row = rows.peak.argmax(-1)[:, None]
    return replace(
        rows,
        mean=rows.mean.mean(-1),
        variance=rows.variance.mean(-1),
        peak=np.take_along_axis(rows.peak, row, -1)[:, 0],
        channel=np.take_along_axis(rows.channel, row, -1)[:, 0],
    )
