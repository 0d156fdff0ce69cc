"""Sums over rows -> mean and population variance, or the rows in which those would cancel."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from normscope.activations.shelf import Shelf, Shelved, unshelved

_SAFE_SHARE = 0.25
"""Smallest var / E[x²] for which float32's E[x²] - mean² keeps five digits."""
_SAFE_NORMS = (1e-12, 1e18)
"""Norms whose squares neither vanished nor overflowed in float32."""


@dataclass(slots=True)
class Sums:
    """Sum and norm of each row, in which nothing cancels."""

    total: np.ndarray | Shelved
    norm: np.ndarray | Shelved
    largest: float
    """No value of any row exceeds it."""

    def mean_and_variance(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both for each row, in float64."""
        mean = unshelved(self.total).astype(np.float64) / length
        variance = np.square(unshelved(self.norm).astype(np.float64)) / length - np.square(mean)
        return torch.from_numpy(mean), torch.from_numpy(variance)

    def move_to(self, shelf: Shelf) -> None:
        """Hold on to no memory but the shelf's."""
        self.total, self.norm = shelf.keep(self.total), shelf.keep(self.norm)


@dataclass(slots=True)
class Exact:
    """Moments that were taken directly."""

    mean: torch.Tensor | Shelved
    variance: torch.Tensor | Shelved
    largest: float = math.inf

    def mean_and_variance(self, _length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both for each row."""
        return _as_tensor(self.mean), _as_tensor(self.variance)

    def move_to(self, shelf: Shelf) -> None:
        """Hold on to no memory but the shelf's."""
        mean, variance = self.mean_and_variance(0)
        self.mean, self.variance = shelf.keep(mean.numpy()), shelf.keep(variance.numpy())


def _as_tensor(value: torch.Tensor | Shelved) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(unshelved(value))


@np.errstate(all="ignore")  # infinities and NaN are results here
def checked_sums(rows: torch.Tensor, total: torch.Tensor, norm: torch.Tensor) -> Sums | Exact:
    """Return the sums of [rows, features], or exact moments where the variance would cancel.

    Only the rows in doubt (a large offset, squares out of range, NaN) are taken once more, in
    float64. The questions go to NumPy, whose small operations cost a fraction of torch's.
    """
    totals, norms = total.numpy(), norm.numpy()
    margin = norms * math.sqrt((1 - _SAFE_SHARE) * rows.shape[-1]) - np.abs(totals)
    most = float(np.maximum.reduce(norms))
    sums = Sums(totals, norms, most if most >= 0 else math.inf)
    # Comparisons with NaN are false, which puts its rows in doubt.
    if np.minimum.reduce(margin) > _SAFE_NORMS[0] and most < _SAFE_NORMS[1]:
        return sums
    safe = (margin > _SAFE_NORMS[0]) & (norms < _SAFE_NORMS[1])
    return _repaired(rows, sums, torch.from_numpy(~safe))


def _repaired(rows: torch.Tensor, sums: Sums, doubtful: torch.Tensor) -> Exact:
    mean, variance = sums.mean_and_variance(rows.shape[-1])
    mean[doubtful], variance[doubtful] = exact_moments(rows[doubtful]).mean_and_variance(0)
    return Exact(mean, variance, sums.largest)


def exact_moments(rows: torch.Tensor) -> Exact:
    """Return the moments of each row of [rows, features], taken in float64 in two passes."""
    wide = rows.double()
    mean = wide.mean(-1)
    return Exact(mean, (wide - mean.unsqueeze(-1)).square_().mean(-1))
