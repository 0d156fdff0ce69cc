"""Statistics -> how the residual stream grows with depth."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from normscope.inspection import Role
from normscope.render.statistics_words import figure
from normscope.render.visible import visible
from normscope.statistics import NormStatistics, Statistics, greatest, summarize

_ON_THE_STREAM = frozenset({Role.BRANCH_INPUT, Role.TRUNK, Role.FINAL})
"""Norms that read the stream itself."""
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGrowth:
    """The variance of one stack's stream, from block to block."""

    stack: str
    places: tuple[str, ...]
    """Paths of the blocks, and the name of a final norm that reads the end."""
    usual: tuple[float, ...]
    """Variance of the median token before the block's first norm."""
    largest: tuple[float, ...]
    """The largest variance of any token before any norm of the block."""
    stream: str = ""
    """Which tokens flow in it, where a model has tokens on both sides."""

    def factor(self) -> float:
        """Return the mean growth of the median token's variance from one place to the next."""
        first, last = self.usual[0], self.usual[-1]
        if not (first > 0 and last > 0 and math.isfinite(last / first)):
            return math.nan  # also where one of them is NaN
        return float((last / first) ** (1 / (len(self.usual) - 1)))

    def most(self) -> str:
        """Say where the largest variance stands, where that is not at the end."""
        summary = summarize(self.largest)
        if summary.at_token is None or summary.maximum <= 2 * self.largest[-1]:
            return ""
        return f"{figure(summary.maximum)} in {visible(self.places[summary.at_token])}"


def stream_growth(statistics: Statistics) -> tuple[StreamGrowth, ...]:
    """Return the stream of each stack of at least two blocks, read before each block's first norm.

    A final norm that follows the stack reads its end.
    """
    found: list[StreamGrowth] = []
    readable = [norm for norm in statistics.norms if _reads_the_stream(norm)]
    for (stack, stream), norms in groupby(_with_stacks(readable), key=lambda item: item[0]):
        blocks = list(_by_block(norm for _, norm in norms))
        if len(blocks) > 1:
            found.append(_growth(stack, stream, blocks))
    return tuple(found)


def _reads_the_stream(norm: NormStatistics) -> bool:
    return norm.before is not None and norm.role in _ON_THE_STREAM and norm.rows_per_token == 1


def _with_stacks(
    norms: Sequence[NormStatistics],
) -> Iterator[tuple[tuple[str, str], NormStatistics]]:
    """Name the stack of each norm; a final norm belongs to the stack before it."""
    stack = ""
    for norm in norms:
        if norm.block is not None:
            stack = _list_of(norm.block)
        yield (stack, norm.stream), norm


def _list_of(block: str) -> str:
    """Return the path of the list that a block stands in."""
    before, _, last = block.rpartition(".")
    return before if last.isdecimal() else block


def _by_block(norms: Iterator[NormStatistics]) -> Iterator[list[NormStatistics]]:
    """A block that runs again (a shared one) is read again: its norms have another call."""
    for _, block in groupby(norms, key=lambda norm: (norm.block, norm.call)):
        yield list(block)


def _growth(stack: str, stream: str, blocks: Sequence[Sequence[NormStatistics]]) -> StreamGrowth:
    variances = [
        [norm.before.summary() for norm in block if norm.before is not None] for block in blocks
    ]
    return StreamGrowth(
        stack=stack,
        stream=stream,
        places=tuple(block[0].block or block[0].name for block in blocks),
        usual=tuple(block[0].median for block in variances),
        largest=tuple(greatest([item.maximum for item in block]) for block in variances),
    )


def bars(values: Sequence[float], *, low: float, high: float, most: int | None) -> str:
    """Return a bar a value, or the largest of several where there are more than `most`."""
    step = 1 if most is None else math.ceil(len(values) / most)
    values = [greatest(values[start : start + step]) for start in range(0, len(values), step)]
    return "".join(_bar(value, low, high) for value in values)


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "!"
    if not (low > 0 and high > low and value > 0):
        return _BARS[0]
    share = math.log(value / low) / math.log(high / low)
    return _BARS[min(len(_BARS) - 1, max(0, round(share * (len(_BARS) - 1))))]


def growth_sentence(growth: StreamGrowth) -> str:
    """Say in words how the median token's variance goes."""
    first, last = growth.usual[0], growth.usual[-1]
    factor = growth.factor()
    steps = len(growth.usual) - 1
    if math.isnan(factor):
        return f"the median token's variance goes from {figure(first)} to {figure(last)}"
    whole = last / first
    if 0.5 < whole < 2:
        return f"the median token's variance stays between {_range(growth.usual)}"
    verb = "grows" if whole > 1 else "falls"
    ratio = figure(whole if whole > 1 else 1 / whole)
    each = figure(factor if whole > 1 else 1 / factor)
    return (
        f"the median token's variance {verb} {ratio} times over {steps} blocks, "
        f"{each} times a block"
    )


def _range(values: Sequence[float]) -> str:
    return f"{figure(min(values))} and {figure(max(values))}"
