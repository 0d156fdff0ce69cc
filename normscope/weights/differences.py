"""Norm parameters of two checkpoints -> how far their effective values lie apart."""

from collections.abc import Mapping, Sequence

import torch

from normscope.weights.effective import EffectiveValue
from normscope.weights.report import ValueDifference


def value_differences(
    left: Mapping[str, EffectiveValue],
    right: Mapping[str, EffectiveValue],
    pairs: Sequence[tuple[str, str]],
) -> tuple[ValueDifference, ...]:
    """Compare the pairs of parameters that both sides have in one shape.

    Where one file holds w and the other 1 + w, the sum of the first is rounded as the other's was.
    NaN at the same place on both sides is equal, and counted; any other differs from everything.
    """
    return tuple(
        _difference(
            one,
            other,
            left[one].rounded_as(right[other]),
            right[other].rounded_as(left[one]),
        )
        for one, other in pairs
        if one in left and other in right and left[one].exact.shape == right[other].exact.shape
    )


def _difference(one: str, other: str, left: torch.Tensor, right: torch.Tensor) -> ValueDifference:
    both_nan = left.isnan() & right.isnan()
    equal = (left == right) | both_nan
    # What is equal and no finite number says nothing of how far the others lie apart.
    aside = equal & ~left.isfinite()
    left, right = left.masked_fill(aside, 0.0), right.masked_fill(aside, 0.0)
    apart = torch.where(equal, 0.0, (left - right).abs()).reshape(-1)
    largest = float(apart.max()) if len(apart) else 0.0
    scale = max(float(left.norm()), float(right.norm()))
    return ValueDifference(
        left=one,
        right=other,
        largest=largest,
        relative=float(apart.norm()) / scale if largest and scale else largest,
        channel=int(apart.argmax()) if largest else None,
        both_nan=int(both_nan.sum()),
    )
