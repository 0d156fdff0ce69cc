"""Sums over rows -> mean and population variance, or the rows in which those would cancel."""

import math
from dataclasses import dataclass

import torch

_SAFE_SHARE = 0.1
"""Smallest var / E[x²] for which float32's E[x²] - mean² keeps six digits."""
_SAFE_SQUARES = (1e-24, 1e36)
"""Sums of squares that neither vanished nor overflowed in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sum and sum of squares of each row, in which nothing cancels."""

    total: torch.Tensor
    square: torch.Tensor
    largest: float
    """No value of any row exceeds it."""

    def mean_and_variance(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both for each row, in float64."""
        mean = self.total.double() / length
        return mean, self.square.double() / length - mean.square()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Moments that were taken directly."""

    mean: torch.Tensor
    variance: torch.Tensor
    largest: float = math.inf

    def mean_and_variance(self, _length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both for each row."""
        return self.mean, self.variance


def checked_sums(rows: torch.Tensor, total: torch.Tensor, square: torch.Tensor) -> Sums | Exact:
    """Return the sums of [rows, features], or exact moments where the variance would cancel.

    Only the rows in doubt (a large offset, squares out of range, NaN) are taken once more, in
    float64. The questions go to NumPy, whose small operations cost a fraction of torch's.
    """
    totals, squares = total.numpy(), square.numpy()
    # Comparisons with NaN are false, which puts its rows in doubt.
    safe = totals * totals < squares * ((1 - _SAFE_SHARE) * rows.shape[-1])
    least, most = float(squares.min()), float(squares.max())
    sums = Sums(total=total, square=square, largest=math.sqrt(most) if most >= 0 else math.inf)
    in_range = least > _SAFE_SQUARES[0] and most < _SAFE_SQUARES[1]
    if in_range and bool(safe.all()):
        return sums
    safe &= (squares > _SAFE_SQUARES[0]) & (squares < _SAFE_SQUARES[1])
    return _repaired(rows, sums, torch.from_numpy(~safe))


def _repaired(rows: torch.Tensor, sums: Sums, doubtful: torch.Tensor) -> Exact:
    mean, variance = sums.mean_and_variance(rows.shape[-1])
    exact = exact_moments(rows[doubtful])
    mean[doubtful], variance[doubtful] = exact.mean, exact.variance
    return Exact(mean=mean, variance=variance, largest=math.inf)


def exact_moments(rows: torch.Tensor) -> Exact:
    """Return the moments of each row of [rows, features], taken in float64 in two passes."""
    wide = rows.double()
    mean = wide.mean(-1)
    return Exact(mean=mean, variance=(wide - mean.unsqueeze(-1)).square_().mean(-1))
