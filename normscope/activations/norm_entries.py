"""What was read of one norm, batch by batch -> its statistics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from statistics import median

import numpy as np

from normscope.activations.channels import number_channels
from normscope.activations.chunks import NormRows
from normscope.activations.collect import Entries, averaged, token_rows
from normscope.activations.plan import NormPlan
from normscope.activations.readings import Readings
from normscope.activations.reduce import RowMoments
from normscope.activations.tokens import CountedTokens
from normscope.norms import Norm, NormKind
from normscope.statistics import NormStatistics


@dataclass(slots=True)
class _Point:
    """One of the two points of a norm."""

    entries: Entries = field(default_factory=Entries)
    every: Entries = field(default_factory=Entries)
    """The single rows, where a token has several."""
    magnitudes: list[float] = field(default_factory=list)


class NormEntries:
    """Collects one norm over all batches."""

    def __init__(self, plan: NormPlan) -> None:
        self._plan = plan
        self._points = (_Point(), _Point())
        self._rows_per_token: int | None = None if plan.rows.layout is None else 1
        self._rows: str | None = None
        self._problem: str | None = None
        self._row_length: int | None = None

    def add(self, readings: Readings, tokens: CountedTokens | None) -> None:
        """Take what one forward pass has read; `tokens` are those of this norm's stream."""
        for point, index in zip(self._points, (self._plan.before, self._plan.after), strict=True):
            reduced = readings.reduced(index) if index is not None else None
            if reduced is None:
                self._problem = _unread(index)
                continue
            rows = number_channels(self._plan.norm, reduced.moments())
            if point is self._points[0]:
                self._row_length = rows.length
            if index in readings.magnitudes:
                point.magnitudes.append(float(readings.magnitudes[index]))
            if self._plan.rows.layout is None or tokens is None:
                self._add_rows(point, rows)
            else:
                self._add_tokens(point, rows, tokens)

    def _add_rows(self, point: _Point, rows: RowMoments) -> None:
        norm = self._plan.norm
        self._rows_per_token = None
        self._rows = _rows_in_words(norm, tuple(rows.mean.shape))
        # A batch norm's rows are the same channels in every batch; others are new samples.
        if norm.kind is NormKind.BATCH:
            point.entries.merge(rows)
        else:
            point.entries.extend(rows)

    def _add_tokens(self, point: _Point, rows: RowMoments, tokens: CountedTokens) -> None:
        layout = self._plan.rows.layout
        assert layout is not None
        arranged = token_rows(rows, layout, tokens.extent, tokens.counted)
        if arranged is None:
            shape = " x ".join(str(size) for size in rows.mean.shape)
            self._problem = f"its rows ({shape}) do not follow the tokens in every batch"
            return
        self._rows_per_token = arranged.mean.shape[-1]
        if self._rows_per_token > 1:
            point.every.extend(arranged)
        point.entries.extend(averaged(arranged))

    def taken(self, orders: Mapping[str, np.ndarray]) -> NormRows | None:
        """Return the rows that were read since the last time, and let go of them.

        `orders` has for each stream which entry comes first.
        """
        stream = self._plan.rows.stream if self._rows_per_token is not None else None
        order = None if stream is None else orders.get(stream)
        single = _every_row(order, self._rows_per_token)
        before, after = (point.entries.taken(order) for point in self._points)
        every_before, every_after = (point.every.taken(single) for point in self._points)
        if before is None or after is None or self._problem is not None:
            return None
        return NormRows(
            before=before, after=after, every_before=every_before, every_after=every_after
        )

    def merged(self) -> NormRows | None:
        """Return the rows that get further values in every pass, as they are by now."""
        before, after = (point.entries.joined_rows() for point in self._points)
        if before is None or after is None or self._problem is not None:
            return None
        return NormRows(before=before, after=after)

    def described(self) -> NormStatistics:
        """Return what is known of the norm, without its moments."""
        norm = self._plan.norm
        return NormStatistics(
            name=norm.name,
            call=norm.call,
            role=self._plan.role,
            block=self._plan.block,
            kind=norm.kind.value,
            eps=norm.eps,
            eps_position=norm.eps_position.value,
            statistics_dtype=norm.statistics_dtype,
            stream=self._plan.rows.stream if self._rows_per_token is not None else "",
            rows_per_token=self._rows_per_token,
            rows=self._rows,
            row_length=self._row_length,
            problem=self._problem,
        )

    def magnitudes(self) -> tuple[float | None, float | None]:
        """Return the median magnitude before and after, of the passes that had a massive peak."""
        before, after = (
            median(point.magnitudes) if point.magnitudes else None for point in self._points
        )
        return before, after


def _every_row(order: np.ndarray | None, rows_per_token: int | None) -> np.ndarray | None:
    """Return the order of the single rows of tokens in some order."""
    if order is None or rows_per_token is None:
        return None
    steps = np.arange(rows_per_token)
    return np.asarray((order[:, None] * rows_per_token + steps).ravel())


def _unread(index: int | None) -> str:
    if index is None:
        return "its values cannot be read where it runs"
    return "it ran while the model was traced and not while it was measured"


def _rows_in_words(norm: Norm, shape: tuple[int, ...]) -> str:
    if norm.kind is NormKind.BATCH:
        return f"{prod(shape)} channels"
    if norm.groups and len(shape) > 1:
        return f"{prod(shape[:-1])} x {shape[-1]} groups"
    if norm.kind is NormKind.INSTANCE and len(shape) > 1:
        return f"{prod(shape[:-1])} x {shape[-1]} channels"
    return " x ".join(str(size) for size in shape) + " rows" if shape else "1 row"
