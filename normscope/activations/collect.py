"""Row moments of one forward pass after another -> the moments of each norm, token by token."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import torch

from normscope.activations.layouts import Extent, RowLayout
from normscope.activations.moments import Accumulated, merge_moments
from normscope.activations.reduce import RowMoments
from normscope.statistics import Moments


@dataclass(slots=True)
class Entries:
    """The moments of one point of one norm, so far: one entry a token or a row."""

    mean: list[float] = field(default_factory=list)
    variance: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    channel: list[int] = field(default_factory=list)
    values: int = 0
    """How many values each entry was taken of."""

    def extend(self, rows: RowMoments) -> None:
        """Append the entries of other rows."""
        self.mean += rows.mean.flatten().tolist()
        self.variance += rows.variance.flatten().tolist()
        self.peak += rows.peak.flatten().tolist()
        self.channel += rows.channel.flatten().tolist()

    def merge(self, rows: RowMoments) -> None:
        """Join further values of the same rows (the channels of a batch norm)."""
        fresh = Entries(values=rows.length)
        fresh.extend(rows)
        if self.values:
            pairs = zip(self._accumulated(), fresh._accumulated(), strict=True)
            fresh = _of_accumulated([merge_moments(old, new) for old, new in pairs])
        self.mean, self.variance = fresh.mean, fresh.variance
        self.peak, self.channel = fresh.peak, fresh.channel
        self.values = fresh.values

    def _accumulated(self) -> list[Accumulated]:
        columns = zip(self.mean, self.variance, self.peak, self.channel, strict=True)
        return [
            Accumulated(
                count=self.values, mean=mean, variance=variance, peak=peak, peak_channel=channel
            )
            for mean, variance, peak, channel in columns
        ]

    def as_moments(self, magnitudes: Sequence[float] = ()) -> Moments | None:
        """Return what was collected; None where nothing was."""
        if not self.mean:
            return None
        return Moments(
            mean=tuple(self.mean),
            variance=tuple(self.variance),
            peak=tuple(self.peak),
            peak_channel=tuple(self.channel),
            magnitude=median(magnitudes) if magnitudes else None,
        )


def _of_accumulated(items: Sequence[Accumulated]) -> Entries:
    return Entries(
        mean=[item.mean for item in items],
        variance=[item.variance for item in items],
        peak=[item.peak for item in items],
        channel=[item.peak_channel for item in items],
        values=items[0].count if items else 0,
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
    kept = counted.flatten().to(rows.mean.device)

    def arranged(values: torch.Tensor) -> torch.Tensor:
        ordered = values.reshape(sizes).permute(layout.order())
        return ordered.reshape(extent.batch * extent.length, -1)[kept]

    return replace(
        rows,
        mean=arranged(rows.mean),
        variance=arranged(rows.variance),
        peak=arranged(rows.peak),
        channel=arranged(rows.channel),
    )


def averaged(rows: RowMoments) -> RowMoments:
    """Return one entry a token: mean and variance averaged over its rows, the largest peak."""
    peak, row = rows.peak.max(-1)
    return replace(
        rows,
        mean=rows.mean.double().mean(-1),
        variance=rows.variance.double().mean(-1),
        peak=peak,
        channel=rows.channel.gather(-1, row.unsqueeze(-1)).squeeze(-1),
    )
