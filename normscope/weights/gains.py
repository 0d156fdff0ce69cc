"""One stored gain or bias -> what its values are like."""

import torch

from normscope.weights.report import ValueFacts

_OUTLIER = 10.0
"""A channel this many times the median magnitude stands out."""
_DEAD = 1e-6
"""Below this share of the median magnitude a channel carries nothing."""


def describe_values(tensor: torch.Tensor, *, offset: float = 0.0) -> ValueFacts:
    """Return the facts of a gain or bias of any shape; `offset` is added to make it effective."""
    stored = tensor.detach().reshape(-1).double()
    finite = torch.isfinite(stored)
    values = stored[finite]
    if not len(values):
        return _nothing(len(stored), offset)
    effective = values + offset
    magnitude = effective.abs()
    median = float(magnitude.median())
    channels = finite.nonzero().reshape(-1)
    rounded = _in_bfloat16(values, offset)
    return ValueFacts(
        count=len(stored),
        mean=float(values.mean()),
        spread=float(values.std(correction=0)),
        minimum=float(values.min()),
        maximum=float(values.max()),
        non_finite=len(stored) - len(values),
        dead=int((magnitude <= _DEAD * median).sum()),
        outliers=int((magnitude > _OUTLIER * median).sum()),
        largest_channel=int(channels[magnitude.argmax()]),
        offset=offset,
        lost_in_bfloat16=int(((values != 0) & (rounded == offset)).sum()) if offset else 0,
        bfloat16_error=_relative_error(rounded, effective),
    )


def _nothing(count: int, offset: float) -> ValueFacts:
    nan = float("nan")
    return ValueFacts(
        count=count,
        mean=nan,
        spread=nan,
        minimum=nan,
        maximum=nan,
        non_finite=count,
        dead=0,
        outliers=0,
        largest_channel=None,
        offset=offset,
        lost_in_bfloat16=0,
        bfloat16_error=nan,
    )


def _in_bfloat16(values: torch.Tensor, offset: float) -> torch.Tensor:
    """Return the effective values as bfloat16 arithmetic has them."""
    return (values.bfloat16() + offset).double()


def _relative_error(rounded: torch.Tensor, exact: torch.Tensor) -> float:
    known = exact != 0
    if not bool(known.any()):
        return 0.0
    return float(((rounded - exact).abs() / exact.abs())[known].max())
