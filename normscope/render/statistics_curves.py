"""Statistics -> the curves of a picture: variance and peak of tokens along the stream."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from normscope.inspection import Role
from normscope.render.statistics_words import entry_labels
from normscope.statistics import Moments, NormStatistics, Quantity, Statistics

_ON_THE_STREAM = frozenset({Role.BRANCH_INPUT, Role.TRUNK, Role.FINAL})
_MOST_LINES = 300
"""Tokens that are drawn one by one."""
_MOST_LABELS = 6
_OUTLYING = 100.0
"""Times the norm's median token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line: a value at each of the norms."""

    label: str
    values: tuple[float, ...]
    outlying: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The norms of one stream of tokens, from first to last."""

    norms: tuple[NormStatistics, ...]
    title: str

    def ticks(self) -> tuple[tuple[int, str], ...]:
        """Return where each block begins, and what it is called: its number where it has one."""
        found: list[tuple[int, str]] = []
        last: str | None = None
        for index, norm in enumerate(self.norms):
            place = norm.block or norm.name
            if place != last:
                found.append((index, place.rpartition(".")[2] if norm.block else "end"))
            last = place
        return tuple(found)

    def stacks(self) -> str:
        """Name the lists of blocks."""
        paths = (norm.block.rpartition(".")[0] for norm in self.norms if norm.block)
        return ", ".join(dict.fromkeys(path for path in paths if path)) or "norms"


def depths_of(statistics: Statistics) -> tuple[Depth, ...]:
    """Return the norms that read the stream, for each side that has tokens of its own.

    Where none reads it, all norms with one row a token.
    """
    measured = [n for n in statistics.norms if n.before is not None and n.rows_per_token == 1]
    readers = [norm for norm in measured if norm.role in _ON_THE_STREAM] or measured
    streams = dict.fromkeys(norm.stream for norm in readers)
    return tuple(
        Depth(norms=tuple(norm for norm in readers if norm.stream == stream), title=stream)
        for stream in streams
    )


def point_of(norm: NormStatistics, point: str) -> Moments | None:
    """Return the moments before or after a norm."""
    return norm.before if point == "before" else norm.after


def usual_curves(depth: Depth, point: str, quantity: Quantity) -> tuple[Curve, Curve]:
    """Return the median token and the largest one of each norm."""
    found = [point_of(norm, point) for norm in depth.norms]
    summaries = [None if moments is None else moments.summary(quantity) for moments in found]
    return (
        Curve(
            label="median token",
            values=tuple(math.nan if item is None else item.median for item in summaries),
        ),
        Curve(
            label="largest token",
            values=tuple(math.nan if item is None else item.maximum for item in summaries),
        ),
    )


def token_curves(
    statistics: Statistics, depth: Depth, point: str, quantity: Quantity
) -> tuple[Curve, ...]:
    """Return a line a token, those that stand out last; none where the tokens are not held."""
    if statistics.left_out is not None:
        return ()
    labels = entry_labels(statistics, depth.norms[0])
    outlying = outlying_tokens(depth)[:_MOST_LABELS]
    drawn = [*_spread(len(labels), _MOST_LINES), *outlying]
    return tuple(
        Curve(
            label=labels[token],
            values=tuple(_value(norm, point, quantity, token) for norm in depth.norms),
            outlying=token in outlying,
        )
        for token in dict.fromkeys(sorted(drawn, key=lambda token: (token in outlying, token)))
    )


def _spread(count: int, most: int) -> Sequence[int]:
    """Return at most so many of the tokens, evenly."""
    return range(0, count, max(1, math.ceil(count / most)))


def _value(norm: NormStatistics, point: str, quantity: Quantity, token: int) -> float:
    moments = point_of(norm, point)
    if moments is None:
        return math.nan
    return (moments.peak if quantity is Quantity.PEAK else moments.variance)[token]


def outlying_tokens(depth: Depth) -> list[int]:
    """Return the tokens whose variance is over 100 times the median's before some norm.

    Those that stand out most come first.
    """
    shares: dict[int, float] = {}
    for norm in depth.norms:
        usual = norm.before.summary().median if norm.before is not None else math.nan
        if norm.before is None or norm.kept is not None or not usual > 0:
            continue
        for token, value in enumerate(norm.before.variance):
            if value > _OUTLYING * usual and value / usual > shares.get(token, 0.0):
                shares[token] = value / usual
    return sorted(shares, key=lambda token: (-shares[token], token))
