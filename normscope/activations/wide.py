"""Rows -> moments and peak of each, on an accelerator.

There one kernel takes mean and variance, and nothing is asked of a result: that would wait for the
device in every hook.
"""

from dataclasses import dataclass

import torch

from normscope.activations.sums import Exact


@dataclass(slots=True)
class Peak:
    """The largest absolute value of each row, and its first place."""

    value: torch.Tensor
    place: torch.Tensor

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both."""
        return self.value, self.place


def take_moments(rows: torch.Tensor) -> Exact:
    """Return mean and variance of each row of [rows, features]."""
    variance, mean = torch.var_mean(rows, -1, correction=0)
    return Exact(mean, variance)


def take_peak(rows: torch.Tensor) -> Peak:
    """Return the first place of the largest absolute value of each row; NaN is the largest."""
    value, place = rows.abs().max(-1)
    return Peak(value, place)
