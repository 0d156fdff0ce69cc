"""Rows -> sums and peak of each, by torch: on accelerators, and on many threads of a CPU."""

from dataclasses import dataclass

import torch

from normscope.activations.sums import Exact, Sums, checked_sums

_BLOCKS = (64, 32)
"""Columns that are searched together: widths that vectorize well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The largest absolute value of each row, and its place."""

    value: torch.Tensor
    place: torch.Tensor

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both."""
        return self.value, self.place


def take_sums(rows: torch.Tensor) -> Sums | Exact:
    """Return what mean and variance of each row of [rows, features] follow from.

    On a CPU torch.var_mean takes ten times as long as a sum and a norm together. Elsewhere it is
    one fast kernel, and asking whether a row is in doubt would wait for the device.
    """
    if rows.is_cpu:
        return checked_sums(rows, rows.sum(-1), torch.linalg.vector_norm(rows, 2, -1).square_())
    variance, mean = torch.var_mean(rows, -1, correction=0)
    return Exact(mean=mean, variance=variance)


def take_peak(rows: torch.Tensor) -> Peak:
    """Return the first place of the largest absolute value of each row; NaN is the largest.

    The largest of each block of columns is found first, then one block a row is searched.
    """
    width = next((width for width in _BLOCKS if rows.shape[-1] % width == 0), None)
    if width is None or not rows.is_contiguous():
        value, place = rows.abs().max(-1)
        return Peak(value=value, place=place)
    blocks = rows.view(len(rows), -1, width)
    value, block = torch.maximum(blocks.amax(2), blocks.amin(2).neg_()).max(-1)
    count = blocks.shape[1]
    chosen = torch.arange(0, len(rows) * count, count, device=rows.device).add_(block)
    within = blocks.view(-1, width).index_select(0, chosen).abs_().max(-1).indices
    return Peak(value=value, place=block.mul_(width).add_(within))
