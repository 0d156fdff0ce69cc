"""Moments of what goes into a norm -> those between the scaling and the gain; no pass of its own.

With y = (x - m) / s, where m and s are the row's, the mean of y is (mean - m) / s and its variance
var / s². A row is what the norm takes one scale of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from normscope.activations.chunks import NormRows, ScaledColumns
from normscope.activations.formula import Stored, stored_of
from normscope.activations.plan import NormPlan
from normscope.norms import EpsPosition, Norm, NormKind
from normscope.statistics import Normalized, NormStatistics

_UNCENTRED = frozenset({NormKind.RMS, NormKind.L2})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Mean and variance of some rows, and how long each is."""

    mean: np.ndarray
    variance: np.ndarray
    length: int


def with_normalized(
    norm: NormStatistics, plan: NormPlan, tensors: Mapping[str, torch.Tensor]
) -> NormStatistics:
    """Return the statistics of one norm with its point before gain and bias.

    `tensors` are the module's: a norm with frozen statistics normalizes by two of them. The point
    is left open where those, or the single rows of a token, are not known.
    """
    several = norm.rows_per_token is not None and norm.rows_per_token > 1
    rows = norm.every_before if several else norm.before
    if rows is None or norm.row_length is None:
        return norm
    held = Rows(mean=np.array(rows.mean), variance=np.array(rows.variance), length=norm.row_length)
    found = _scaled(held, plan, tensors)
    if found is None:
        return norm
    if several:
        found = [values.reshape(-1, norm.rows_per_token or 1).mean(-1) for values in found]
    mean, variance = (tuple(values.tolist()) for values in found)
    return replace(norm, normalized=Normalized(mean=mean, variance=variance))


def with_scaled(
    rows: NormRows, length: int | None, plan: NormPlan, tensors: Mapping[str, torch.Tensor]
) -> NormRows:
    """Return the rows of a chunk with the same point of each, left open as in `with_normalized`."""
    if length is None:
        return rows
    single, _ = rows.single_rows()
    found = _scaled(Rows(mean=single.mean, variance=single.variance, length=length), plan, tensors)
    if found is None:
        return rows
    mean, variance = found
    return replace(rows, scaled=ScaledColumns(mean=mean, variance=variance))


def _scaled(
    rows: Rows, plan: NormPlan, tensors: Mapping[str, torch.Tensor]
) -> Sequence[np.ndarray] | None:
    if not plan.norm.frozen_statistics:
        return normalized_rows(plan.norm, rows)
    stored = stored_of(plan.norm, plan.stored_statistics, tensors)
    return None if stored is None else _by_stored(plan.norm, rows, stored)


@np.errstate(all="ignore")  # infinities and NaN are results here
def normalized_rows(norm: Norm, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each row after its scaling, in float64."""
    centred = norm.kind not in _UNCENTRED
    square = rows.variance if centred else rows.variance + np.square(rows.mean)
    scale = _scale(norm, square * rows.length if norm.kind is NormKind.L2 else square)
    scale = scale / norm.factor
    return np.zeros_like(scale) if centred else rows.mean / scale, rows.variance / np.square(scale)


def _scale(norm: Norm, square: np.ndarray) -> np.ndarray:
    eps = norm.eps or 0.0
    if norm.eps_position is EpsPosition.INSIDE:
        return np.asarray(np.sqrt(square + eps))
    root = np.sqrt(square)
    if norm.eps_position is EpsPosition.OUTSIDE:
        return np.asarray(root + eps)
    return np.asarray(np.maximum(root, eps) if norm.eps_position is EpsPosition.CLAMP else root)


@np.errstate(all="ignore")
def _by_stored(norm: Norm, rows: Rows, stored: Stored) -> Sequence[np.ndarray] | None:
    if stored.variance is None or stored.variance.numel() != len(rows.mean):
        return None
    scale = _scale(norm, stored.variance.flatten().cpu().numpy())
    centre = 0.0 if stored.mean is None else stored.mean.flatten().cpu().numpy()
    return (rows.mean - centre) / scale, rows.variance / np.square(scale)
