"""Rows -> the largest absolute value of each, and the first place where it stands."""

from dataclasses import dataclass

import torch

_BLOCKS = (64, 32)
"""Columns that are searched together: widths that vectorize well."""
_FEW_THREADS = 2
_FEW_VALUES = 1 << 19
"""Up to so many threads or values, NumPy's one thread is done sooner than torch's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """The greatest and the least value of each row, and the first places where they stand."""

    greatest: torch.Tensor
    least: torch.Tensor
    at_greatest: torch.Tensor
    at_least: torch.Tensor

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the larger of the two, and of two that are equal the first place."""
        opposite = -self.least
        first = torch.minimum(self.at_greatest, self.at_least)
        place = torch.where(self.greatest > opposite, self.at_greatest, self.at_least)
        place = torch.where(self.greatest == opposite, first, place)
        return torch.maximum(self.greatest, opposite), place


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The largest absolute value of each row, and its place."""

    value: torch.Tensor
    place: torch.Tensor

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both."""
        return self.value, self.place


def take_peak(rows: torch.Tensor) -> Extremes | Found:
    """Return what the peak of each row of [rows, features] follows from; NaN is the largest.

    torch finds a place on a CPU one value at a time, NumPy sixteen at a time in one thread.
    """
    if rows.is_cpu and (torch.get_num_threads() <= _FEW_THREADS or rows.numel() <= _FEW_VALUES):
        return _extremes(rows)
    width = next((width for width in _BLOCKS if rows.shape[-1] % width == 0), None)
    if width is None or not rows.is_contiguous():
        value, place = rows.abs().max(-1)
        return Found(value=value, place=place)
    return _by_blocks(rows, width)


def _extremes(rows: torch.Tensor) -> Extremes:
    values = rows.numpy()
    at_greatest, at_least = values.argmax(-1), values.argmin(-1)
    flat = values.reshape(-1)
    starts = torch.arange(0, rows.numel(), rows.shape[-1]).numpy()
    return Extremes(
        greatest=torch.from_numpy(flat.take(at_greatest + starts)),
        least=torch.from_numpy(flat.take(at_least + starts)),
        at_greatest=torch.from_numpy(at_greatest),
        at_least=torch.from_numpy(at_least),
    )


def _by_blocks(rows: torch.Tensor, width: int) -> Found:
    """Take the largest of each block of columns, then search one block a row."""
    blocks = rows.view(len(rows), -1, width)
    value, block = torch.maximum(blocks.amax(2), blocks.amin(2).neg_()).max(-1)
    count = blocks.shape[1]
    chosen = torch.arange(0, len(rows) * count, count, device=rows.device).add_(block)
    within = blocks.view(-1, width).index_select(0, chosen).abs_().max(-1).indices
    return Found(value=value, place=block.mul_(width).add_(within))
