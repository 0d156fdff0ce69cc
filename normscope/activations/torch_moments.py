"""Rows -> their moments, by operations of torch: on an accelerator, and where nothing is compiled.

On an accelerator nothing is asked of a result: that would wait for the device in every hook.
"""

from dataclasses import dataclass

import numpy as np
import torch

_SAFE_SQUARES = (1e-27, 1e33)
"""Means of squares of which float32 lost nothing: the same bounds stand in `rows.c`."""
_SAFE_SHARE = 0.25
"""Share of the variance in the mean of squares, above which taking E[x²] - mean² is safe."""
_LONGEST_ROW = 1 << 14
"""Up to this length torch's float32 sum of squares errs by less than 1e-6."""


@dataclass(slots=True)
class TensorMoments:
    """Mean, variance, largest magnitude and its first place, [rows] each."""

    mean: torch.Tensor
    variance: torch.Tensor
    peak: torch.Tensor
    place: torch.Tensor

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the four columns: three of float64, one of int64; this waits for a device."""
        mean, variance, peak = (
            column.cpu().numpy().astype(np.float64)
            for column in (self.mean, self.variance, self.peak)
        )
        return mean, variance, peak, self.place.cpu().numpy()


def measure_on_accelerator(rows: torch.Tensor) -> TensorMoments:
    """Measure [rows, features]; one kernel takes mean and variance."""
    wide = _widened(rows)
    variance, mean = torch.var_mean(wide, -1, correction=0)
    return TensorMoments(mean, variance, *wide.abs().max(-1))


def measure_on_cpu(rows: torch.Tensor) -> TensorMoments:
    """Measure [rows, features]; mean and variance come in float64.

    By sums, which are quick: `torch.var` takes ten times as long. Only rows in doubt are taken once
    more, in float64.
    """
    wide = _widened(rows)
    peaks = wide.abs().max(-1)
    if rows.dtype is torch.float64 or rows.shape[-1] > _LONGEST_ROW:
        return TensorMoments(*_exactly(wide.double()), *peaks)
    mean, variance, doubtful = _by_sums(wide)
    if doubtful.any():
        mean[doubtful], variance[doubtful] = _exactly(wide[doubtful].double())
    return TensorMoments(mean, variance, *peaks)


@np.errstate(all="ignore")  # infinities and NaN are in doubt
def _by_sums(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return mean and variance, and which of them are in doubt.

    The questions go to NumPy, whose small operations cost a fraction of torch's.
    """
    length = wide.shape[-1]
    mean = wide.sum(-1).numpy().astype(np.float64) / length
    norm = torch.linalg.vector_norm(wide, 2, -1).numpy().astype(np.float64)
    square = norm * norm / length
    variance = square - mean * mean
    least, most = _SAFE_SQUARES
    # Comparisons with NaN are false.
    safe = (square > least) & (square < most) & (variance > _SAFE_SHARE * square)
    return torch.from_numpy(mean), torch.from_numpy(variance), torch.from_numpy(~safe)


def _exactly(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = wide.mean(-1)
    return mean, (wide - mean.unsqueeze(-1)).square_().mean(-1)


def _widened(rows: torch.Tensor) -> torch.Tensor:
    return rows if rows.dtype is torch.float64 else rows.float()
