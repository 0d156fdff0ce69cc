"""NormReport -> shapes of input that its module may take, and how their axes are called."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from normscope.inspection import NormReport

_ROWS = 24
_FEW_ROWS = 4
_WIDE = 1 << 14
"""Features from which on a few rows do."""
_SIDES = (5, 6)
"""Places of an image; two sizes that tell the axes apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A shape of input and which of its axes are which."""

    shape: tuple[int, ...]
    features: tuple[int, ...]
    """The axes along which gain and bias vary."""
    reported_axes: tuple[int, ...]
    """The axes that the report names, counted from the first."""


def layouts(report: NormReport) -> Iterator[Layout]:
    """Yield the layouts in which a norm's input may come, the reported one first."""
    size = report.shape
    if any(axis >= 0 for axis in report.axes):
        yield _channels_first(report, max((*report.axes, 1)) + 1)
        return
    if report.groups is not None and len(size) == 1:
        size = (size[0] * report.groups,)
    first = min(report.axes, default=-1)
    if first == -len(size) and report.axes == tuple(range(first, 0)):
        rows = _ROWS if prod(size) < _WIDE else _FEW_ROWS
        for leading in ((rows,), (3, rows), (2, *_SIDES)):
            yield _features_last(leading, size)
    if len(size) == 1:
        rank = max(3, 1 - first)
        for total in dict.fromkeys((rank, 4, 3)):
            shape = (_ROWS // 3, size[0], *_SIDES[: total - 2])
            yield Layout(shape=shape, features=(1,), reported_axes=(1,))


def _features_last(leading: tuple[int, ...], size: tuple[int, ...]) -> Layout:
    axes = tuple(range(len(leading), len(leading) + len(size)))
    return Layout(shape=(*leading, *size), features=axes, reported_axes=axes)


def _channels_first(report: NormReport, rank: int) -> Layout:
    shape = (8, prod(report.shape), *(*_SIDES, 3)[: rank - 2])
    return Layout(shape=shape, features=(1,), reported_axes=report.axes)
