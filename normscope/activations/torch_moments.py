"""Rows -> their moments, by operations of torch: on an accelerator, and where nothing is compiled.

On an accelerator nothing is asked of a result: that would wait for the device in every hook.
"""

from dataclasses import dataclass

import torch

_SAFE_VARIANCES = (1e-24, 1e36)
"""Float32's squares neither vanished nor overflowed in between."""


@dataclass(slots=True)
class TensorMoments:
    """Mean, variance, largest magnitude and its first place, [rows] each."""

    mean: torch.Tensor
    variance: torch.Tensor
    peak: torch.Tensor
    place: torch.Tensor


def measure_on_accelerator(rows: torch.Tensor) -> TensorMoments:
    """Measure [rows, features]; one kernel takes mean and variance."""
    wide = _widened(rows)
    variance, mean = torch.var_mean(wide, -1, correction=0)
    return TensorMoments(mean, variance, *wide.abs().max(-1))


def measure_on_cpu(rows: torch.Tensor) -> TensorMoments:
    """Measure [rows, features]; mean and variance come in float64.

    The variance is that of what is left without the mean, so that nothing cancels. (`torch.var` is
    exact as well, and takes ten times as long.)
    """
    wide = _widened(rows)
    centre = wide.mean(-1, keepdim=True)
    left = wide - centre
    rest = left.mean(-1).double()  # from the centre, which is rounded, to the mean
    mean = centre.squeeze(-1).double() + rest
    variance = left.square_().mean(-1).double() - rest * rest
    least, most = _SAFE_VARIANCES
    doubtful = ~((variance > least) & (variance < most))  # so is NaN
    if doubtful.any():
        mean[doubtful], variance[doubtful] = _exactly(rows[doubtful].double())
    return TensorMoments(mean, variance, *wide.abs().max(-1))


def _exactly(wide: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = wide.mean(-1)
    return mean, (wide - mean.unsqueeze(-1)).square_().mean(-1)


def _widened(rows: torch.Tensor) -> torch.Tensor:
    return rows if rows.dtype is torch.float64 else rows.float()
