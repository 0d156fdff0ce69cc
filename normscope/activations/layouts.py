"""Shape of a norm's rows -> which row belongs to which token; knows no torch.

The rows of a norm over the features of [batch, sequence, features] are tokens. A QK norm has
[batch, heads, sequence] rows or [batch, sequence, heads]; some code flattens batch and sequence, or
batch and heads. What each axis stands for follows from its size, and where two sizes coincide from
the sizes in a second run on inputs of another size.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Factor(StrEnum):
    """What an axis of the rows counts."""

    BATCH = "batch"
    SEQUENCE = "sequence"
    ROWS = "rows"
    """Several rows of one token: heads, groups."""


Axis = tuple[Factor, ...]
"""The factors of one axis, slowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The sizes of one batch of tokens."""

    batch: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """What each axis of a norm's rows stands for."""

    axes: tuple[Axis, ...]

    def sizes(self, shape: Sequence[int], extent: Extent) -> tuple[int, ...] | None:
        """Return the size of every factor in order, or None where `shape` does not fit."""
        if len(shape) != len(self.axes):
            return None
        sizes: list[int] = []
        for size, axis in zip(shape, self.axes, strict=True):
            known = {Factor.BATCH: extent.batch, Factor.SEQUENCE: extent.length}
            fixed = math.prod(known[factor] for factor in axis if factor in known)
            rest = size // fixed if fixed else 0
            if fixed * rest != size or (Factor.ROWS not in axis and rest != 1):
                return None
            sizes.extend(known.get(factor, rest) for factor in axis)
        return tuple(sizes)

    def order(self) -> tuple[int, ...]:
        """Return the permutation of the factors that puts batch and sequence first."""
        factors = [factor for axis in self.axes for factor in axis]
        ranks = {Factor.BATCH: 0, Factor.SEQUENCE: 1, Factor.ROWS: 2}
        return tuple(sorted(range(len(factors)), key=lambda index: (ranks[factors[index]], index)))

    @property
    def has_rows(self) -> bool:
        """Whether a token may have several rows."""
        return any(Factor.ROWS in axis for axis in self.axes)

    @property
    def is_folded(self) -> bool:
        """Whether one axis holds the rows of a token together with something else."""
        return any(Factor.ROWS in axis and len(axis) > 1 for axis in self.axes)

    def rows_per_token(self, shape: Sequence[int], extent: Extent) -> int:
        """Return how many rows belong to each token of a shape that fits."""
        tokens = extent.batch * extent.length
        return math.prod(shape) // tokens if tokens else 0


_SINGLE: tuple[Axis, ...] = (
    (Factor.BATCH,),
    (Factor.SEQUENCE,),
    (Factor.ROWS,),
    (Factor.BATCH, Factor.SEQUENCE),
)
_FOLDED: tuple[Axis, ...] = (
    *_SINGLE,
    (Factor.BATCH, Factor.ROWS),
    (Factor.BATCH, Factor.SEQUENCE, Factor.ROWS),
)
_MOST_AXES = 5


def find_layout(observed: Iterable[tuple[Sequence[int], Extent]]) -> tuple[RowLayout, ...]:
    """Return the layouts that explain every (row shape, extent) observed, the usual one first.

    Empty where the rows are not the tokens of that extent.
    """
    runs = list(observed)
    rank = len(runs[0][0])
    if rank > _MOST_AXES or any(len(shape) != rank for shape, _ in runs):
        return ()
    for choices in (_SINGLE, _FOLDED):
        found = [
            layout
            for axes in itertools.product(choices, repeat=rank)
            if _is_complete(layout := RowLayout(axes=axes), runs)
        ]
        if found:
            return tuple(_distinct(sorted(found, key=_unusual), runs))
    return ()


def _is_complete(layout: RowLayout, runs: Sequence[tuple[Sequence[int], Extent]]) -> bool:
    """Tell whether batch and sequence appear once each; one of size 1 may be missing."""
    factors = [factor for axis in layout.axes for factor in axis]
    if factors.count(Factor.BATCH) > 1 or factors.count(Factor.SEQUENCE) > 1:
        return False
    return all(
        (Factor.BATCH in factors or extent.batch == 1)
        and (Factor.SEQUENCE in factors or extent.length == 1)
        and layout.sizes(shape, extent) is not None
        and layout.rows_per_token(shape, extent) >= 1
        for shape, extent in runs
    )


def _unusual(layout: RowLayout) -> tuple[int, ...]:
    """Sort by what code usually does: batch outermost, then sequence, then heads."""
    factors = [factor for axis in layout.axes for factor in axis]
    missing = sum(factor not in factors for factor in (Factor.BATCH, Factor.SEQUENCE))
    return (missing, factors.count(Factor.ROWS), *layout.order())


def _distinct(
    layouts: Iterable[RowLayout], runs: Sequence[tuple[Sequence[int], Extent]]
) -> Iterable[RowLayout]:
    """Drop layouts that put every row where an earlier one does: axes of size 1 do not matter."""
    seen: set[tuple[tuple[tuple[Factor, int], ...], ...]] = set()
    for layout in layouts:
        effect = tuple(_effect(layout, shape, extent) for shape, extent in runs)
        if effect not in seen:
            seen.add(effect)
            yield layout


def _effect(
    layout: RowLayout, shape: Sequence[int], extent: Extent
) -> tuple[tuple[Factor, int], ...]:
    factors = [factor for axis in layout.axes for factor in axis]
    sizes = layout.sizes(shape, extent) or ()
    return tuple(pair for pair in zip(factors, sizes, strict=True) if pair[1] != 1)
