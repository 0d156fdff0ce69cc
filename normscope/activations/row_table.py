"""Chunk -> one line a row, token by token, as columns of equal length; knows no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from normscope.activations.chunks import Chunk, Columns, NormRows, ScaledColumns, joined
from normscope.statistics import NormStatistics, Token

_NO_TOKEN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """The rows of a chunk: those of the first token, norm by norm, then those of the next."""

    norms: tuple[NormStatistics, ...]
    tokens: tuple[Token, ...]
    norm: np.ndarray
    """Index into `norms` of each row."""
    token: np.ndarray
    """Index into `tokens`; -1 where the row is no token. Those rows come last."""
    row: np.ndarray
    """Which of its token's rows it is; among all of the norm's where rows are no tokens."""
    before: Columns
    after: Columns
    scaled: ScaledColumns
    """Between the scaling and the gain."""
    has_scaled: np.ndarray
    """Whether that is known of a row."""

    def __len__(self) -> int:
        return len(self.norm)

    def token_at(self, place: int) -> Token | None:
        """Return the token of a row."""
        index = int(self.token[place])
        return None if index == _NO_TOKEN else self.tokens[index]


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one norm."""

    token: np.ndarray
    norm: np.ndarray
    row: np.ndarray
    before: Columns
    after: Columns
    scaled: ScaledColumns | None


_NO_NUMBERS, _NO_VALUES = np.zeros(0, dtype=np.int64), np.zeros(0)
_NO_COLUMNS = Columns(mean=_NO_VALUES, variance=_NO_VALUES, peak=_NO_VALUES, channel=_NO_NUMBERS)
_NO_ROWS = _Part(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_COLUMNS, _NO_COLUMNS, None)


@dataclass(slots=True)
class RowTables:
    """Turns the chunks of one run into tables; counts the rows that are no tokens."""

    _counted: dict[int, int] = field(default_factory=dict)

    def table_of(self, chunk: Chunk) -> RowTable:
        """Return the rows of the next chunk."""
        parts = [_NO_ROWS, *self._parts(chunk)]
        token = np.concatenate([part.token for part in parts])
        norm = np.concatenate([part.norm for part in parts])
        row = np.concatenate([part.row for part in parts])
        last = token == _NO_TOKEN
        order = np.lexsort((row, norm, token, last))
        return RowTable(
            norms=chunk.norms,
            tokens=chunk.tokens,
            norm=norm[order],
            token=token[order],
            row=row[order],
            before=joined([part.before for part in parts]).taken(order),
            after=joined([part.after for part in parts]).taken(order),
            scaled=_joined_scaled(parts).taken(order),
            has_scaled=np.concatenate(
                [np.full(len(part.norm), part.scaled is not None) for part in parts]
            )[order],
        )

    def _parts(self, chunk: Chunk) -> Iterator[_Part]:
        places = _places(chunk)
        for index, (norm, rows) in enumerate(zip(chunk.norms, chunk.rows, strict=True)):
            if rows is None or norm.problem is not None:
                continue
            yield self._part(index, norm, rows, places)

    def _part(
        self, index: int, norm: NormStatistics, rows: NormRows, places: dict[str, np.ndarray]
    ) -> _Part:
        before, after = rows.single_rows()
        count = len(before)
        if norm.rows_per_token is None:
            start = self._counted.get(index, 0)
            self._counted[index] = start + count
            token, row = np.full(count, _NO_TOKEN), np.arange(start, start + count)
        else:
            token = np.repeat(places[norm.stream], norm.rows_per_token)
            row = np.arange(count) % norm.rows_per_token
        return _Part(token, np.full(count, index), row, before, after, rows.scaled)


def _places(chunk: Chunk) -> dict[str, np.ndarray]:
    """Return the indices of the tokens of each stream."""
    streams = np.array([token.stream for token in chunk.tokens], dtype=object)
    return {name: np.flatnonzero(streams == name) for name in {"", *streams.tolist()}}


def _joined_scaled(parts: Sequence[_Part]) -> ScaledColumns:
    """Return the entries of several parts, NaN where a norm has none."""
    unknown = (np.full(len(part.norm), np.nan) for part in parts)
    held = [
        part.scaled or ScaledColumns(mean=empty, variance=empty)
        for part, empty in zip(parts, unknown, strict=True)
    ]
    return ScaledColumns(
        mean=np.concatenate([item.mean for item in held]),
        variance=np.concatenate([item.variance for item in held]),
    )
