"""Two statistics -> what corresponds in them: norm by norm, or where they differ depth by depth."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from normscope.render.statistics_stream import StreamGrowth, stream_growth
from normscope.statistics import Moments, NormStatistics, Statistics

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Two:
    """One number of each side; None where a side has nothing there."""

    first: float | None
    second: float | None

    def ratio(self) -> float | None:
        """Return the second to the first, None where that says nothing."""
        if self.first is None or self.second is None or not self.first > 0:
            return None
        found = self.second / self.first
        return found if math.isfinite(found) and math.isfinite(self.first) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedPoint:
    """The variance at one point of a norm, on both sides."""

    point: str
    median: Two
    largest: Two


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedNorm:
    """A norm that both models have: the same name, call, role and tokens."""

    norm: NormStatistics
    points: tuple[PairedPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedNorms:
    """The norms that both have, and those that only one has."""

    both: tuple[PairedNorm, ...]
    only_first: tuple[NormStatistics, ...]
    only_second: tuple[NormStatistics, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDepth:
    """The stream at one depth: before the first norm of a block on either side."""

    places: tuple[str | None, str | None]
    median: Two
    largest: Two


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedStacks:
    """Two stacks, from the first block to the end."""

    stacks: tuple[str, str]
    depths: tuple[PairedDepth, ...]


def pair_norms(first: Statistics, second: Statistics) -> PairedNorms | None:
    """Return the norms that correspond, None where less than half of either side do."""
    ours, theirs = _by_key(first), _by_key(second)
    shared = [key for key in ours if key in theirs]
    if not shared or 2 * len(shared) < max(len(ours), len(theirs)):
        return None
    return PairedNorms(
        both=tuple(
            PairedNorm(norm=ours[key], points=tuple(_points(ours[key], theirs[key])))
            for key in shared
        ),
        only_first=tuple(norm for key, norm in ours.items() if key not in theirs),
        only_second=tuple(norm for key, norm in theirs.items() if key not in ours),
    )


_Key = tuple[str, int, str, str]


def _by_key(statistics: Statistics) -> dict[_Key, NormStatistics]:
    return {(norm.name, norm.call, norm.role.value, norm.stream): norm for norm in statistics.norms}


def _points(ours: NormStatistics, theirs: NormStatistics) -> Iterator[PairedPoint]:
    for point, first, second in (
        ("before", ours.before, theirs.before),
        ("after", ours.after, theirs.after),
    ):
        if first is not None and second is not None:
            yield _paired(point, first, second)


def _paired(point: str, first: Moments, second: Moments) -> PairedPoint:
    one, other = first.summary(), second.summary()
    return PairedPoint(
        point=point,
        median=Two(first=one.median, second=other.median),
        largest=Two(first=one.maximum, second=other.maximum),
    )


def pair_stacks(first: Statistics, second: Statistics) -> tuple[PairedStacks, ...]:
    """Return the streams of both, stack by stack in their order; none where one has no stack.

    Stacks of as many blocks are paired block by block. Else the deeper one gives the rows, and
    beside each stands the block of the other at the same share of the whole depth.
    """
    pairs = zip(stream_growth(first), stream_growth(second), strict=False)
    return tuple(
        PairedStacks(
            stacks=(one.stack, other.stack),
            depths=tuple(
                _depth(one, other, here, there)
                for here, there in (
                    _one_to_one(one, other)
                    if _blocks(one) == _blocks(other)
                    else _by_share(len(one.places), len(other.places))
                )
            ),
        )
        for one, other in pairs
    )


_Places = tuple[int | None, int | None]


def _blocks(growth: StreamGrowth) -> int:
    """Count the blocks, without the final norm behind them."""
    return sum(place.startswith(f"{growth.stack}.") for place in growth.places)


def _one_to_one(one: StreamGrowth, other: StreamGrowth) -> Iterator[_Places]:
    return zip_longest(range(len(one.places)), range(len(other.places)))


def _by_share(one: int, other: int) -> Iterator[_Places]:
    count = max(one, other)
    for row in range(count):
        yield _at(one, row, count), _at(other, row, count)


def _at(places: int, row: int, count: int) -> int:
    return round(row * (places - 1) / (count - 1))


def _depth(
    one: StreamGrowth, other: StreamGrowth, here: int | None, there: int | None
) -> PairedDepth:
    return PairedDepth(
        places=(_taken(one.places, here), _taken(other.places, there)),
        median=Two(first=_taken(one.usual, here), second=_taken(other.usual, there)),
        largest=Two(first=_taken(one.largest, here), second=_taken(other.largest, there)),
    )


def _taken(items: Sequence[Item], index: int | None) -> Item | None:
    return None if index is None else items[index]
