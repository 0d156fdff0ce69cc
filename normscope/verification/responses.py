"""A change of a value on its way -> how what lies behind it answers: not at all, in step, or else.

A value is compared at two sizes, the smaller of them at least one: eps then plays no part.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import torch

from normscope.verification.rerun import Change, Edge, Edit, Subject, Values, rerun

FACTOR = 3.0
_SAME, _DIFFERENT = 0.02, 0.08
"""Relative changes up to which a value counts as unchanged, and from which as changed."""


class Response(StrEnum):
    """How a value answers when one that it is made from grows or shifts."""

    UNCHANGED = "unchanged"
    IN_STEP = "in step"
    """It grows by the same factor."""
    CHANGED = "changed"
    UNCLEAR = "unclear"
    NOTHING = "nothing"
    """There are no elements (an expert without tokens), or zeros alone."""


def responses_to_growth(
    subject: Subject,
    baseline: Values,
    grown: Sequence[Edge | int],
    watched: Iterable[Edge | int],
) -> Mapping[Edge | int, Response]:
    """Grow one value, along all given operands or as a whole, and tell how others answer."""
    small = _to_size_one(baseline[grown[0]])
    before = baseline if small == 1.0 else rerun(subject, _edit(grown, _times(small), watched))
    after = rerun(subject, _edit(grown, _times(FACTOR * small), watched))
    return {item: _response(before[item], after[item]) for item in watched}


def responses_to_shift(
    subject: Subject,
    baseline: Values,
    shifted: Sequence[Edge | int],
    watched: Iterable[Edge | int],
) -> Mapping[Edge | int, Response]:
    """Add one number to all elements of a value and tell how others answer."""
    size = max(1.0, _size(baseline[shifted[0]]))
    small = _to_size_one(baseline[shifted[0]])
    before = baseline if small == 1.0 else rerun(subject, _edit(shifted, _times(small), watched))
    after = rerun(subject, _edit(shifted, lambda value: small * value + 2.0 * size, watched))
    return {item: _response(before[item], after[item]) for item in watched}


def _edit(places: Sequence[Edge | int], change: Change, watched: Iterable[Edge | int]) -> Edit:
    return Edit(
        operands={place: change for place in places if isinstance(place, Edge)},
        outputs={place: change for place in places if not isinstance(place, Edge)},
        watched=tuple(watched),
    )


def _times(factor: float) -> Change:
    return lambda value: value * factor


def _size(value: torch.Tensor) -> float:
    return float(value.abs().square().mean().sqrt())


def _to_size_one(value: torch.Tensor) -> float:
    size = _size(value)
    return 1.0 if size >= 1.0 or size == 0.0 else 1.0 / size


def _response(before: torch.Tensor, after: torch.Tensor) -> Response:
    if before.shape != after.shape:  # it chose other places or experts
        return Response.CHANGED
    if not before.any() and not after.any():
        return Response.NOTHING
    if _differs(before, after) < _SAME:
        return Response.UNCHANGED
    if _differs(FACTOR * before, after) < _SAME:
        return Response.IN_STEP
    return Response.CHANGED if _differs(before, after) > _DIFFERENT else Response.UNCLEAR


def _differs(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return the relative distance; NaN is neither small nor large."""
    size = max(float(first.norm()), float(second.norm()))
    return float((first - second).norm()) / size
