"""Entries of a norm -> those that findings speak of; knows no torch.

What is chosen of a whole is chosen of its parts and then of what they chose: every choice is by a
total order (a value, then the place), so that the order of the parts does not matter.
"""

import numpy as np

from normscope.activations.chunks import Columns

_LARGEST = 8
"""Entries of the largest variances and peaks, whatever their tokens."""
_TOKENS = 32
"""Tokens (ids) with the largest variances, one entry each."""
_CHANNELS = 16
"""Channels with the largest peaks, one entry each."""


def notable_entries(before: Columns, after: Columns, ids: np.ndarray) -> np.ndarray:
    """Return the places of the entries that stand out, ascending.

    `ids` has the token's id of each entry. The greatest mean, variance and peak of both points are
    among them, the least variance and square, and the first values that are not finite.
    """
    by_variance, by_peak = _downward(before.variance), _downward(before.peak)
    chosen = [
        by_variance[:_LARGEST],
        by_peak[:_LARGEST],
        _distinct(by_variance, ids, _TOKENS),
        _distinct(by_peak, before.channel, _CHANNELS),
        _upward(before.variance)[:1],
        _upward(before.variance + np.square(before.mean))[:1],
    ]
    for point in (before, after):
        chosen += [_downward(values)[:1] for values in (point.mean, point.variance, point.peak)]
        chosen.append(np.flatnonzero(~np.isfinite(point.peak))[:1])
    return np.unique(np.concatenate(chosen))


def _downward(values: np.ndarray) -> np.ndarray:
    """Return the places from the greatest value on; NaN is greater than every number."""
    wrong = np.isnan(values)
    return np.lexsort((np.where(wrong, 0.0, -values), ~wrong))


def _upward(values: np.ndarray) -> np.ndarray:
    return np.argsort(values, kind="stable")


def _distinct(order: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Return the first entry in `order` of each of the first `count` labels."""
    _, firsts = np.unique(labels[order], return_index=True)
    return order[np.sort(firsts)[:count]]
