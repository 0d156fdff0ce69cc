"""Rows -> sums and extremes of each, a cache's worth of rows at a time.

One thread of NumPy reads a row four times while it is in the cache: its sums run at the speed of
BLAS, and it finds a place sixteen values at a time where torch takes them one by one. It also waits
for no other thread, which torch's reductions do after each pass.
"""

from dataclasses import dataclass

import numpy as np
import torch

_CACHED = 1 << 17
"""Values that are read four times before the next ones."""


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
class Passes:
    """What four passes over [rows, features] found, one entry a row."""

    total: torch.Tensor
    square: torch.Tensor
    extremes: Extremes


def take_passes(rows: torch.Tensor) -> Passes:
    """Return sum, sum of squares and extremes of each row; bfloat16 is upcast chunk by chunk."""
    values = _array(rows)
    count, length = values.shape
    kind = values.dtype if values.dtype == np.float64 else np.dtype(np.float32)
    total, square, greatest, least = (np.empty(count, kind) for _ in range(4))
    at_greatest, at_least = (np.empty(count, np.intp) for _ in range(2))
    step = max(1, _CACHED // length)
    for start in range(0, count, step):
        part = slice(start, start + step)
        chunk = _upcast(values[part])
        np.einsum("ij->i", chunk, out=total[part])
        np.vecdot(chunk, chunk, out=square[part])
        starts = np.arange(0, chunk.size, length)
        flat = chunk.reshape(-1)
        flat.take(chunk.argmax(-1, out=at_greatest[part]) + starts, out=greatest[part])
        flat.take(chunk.argmin(-1, out=at_least[part]) + starts, out=least[part])
    return Passes(
        total=torch.from_numpy(total),
        square=torch.from_numpy(square),
        extremes=Extremes(
            greatest=torch.from_numpy(greatest),
            least=torch.from_numpy(least),
            at_greatest=torch.from_numpy(at_greatest),
            at_least=torch.from_numpy(at_least),
        ),
    )


def _array(rows: torch.Tensor) -> np.ndarray:
    """NumPy has no bfloat16: its bits are the upper half of a float32's."""
    if rows.dtype is torch.bfloat16:
        return rows.view(torch.int16).numpy().view(np.uint16)
    return (rows if rows.dtype is torch.float64 else rows.float()).numpy()


def _upcast(chunk: np.ndarray) -> np.ndarray:
    if chunk.dtype != np.uint16:
        return chunk
    wide = chunk.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)
