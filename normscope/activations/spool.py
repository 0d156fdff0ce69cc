"""Chunks -> their rows in a file, from which each norm's can be read back; knows no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from normscope.activations.chunks import Chunk, Columns, NormRows, ScaledColumns
from normscope.files import take_room
from normscope.statistics import Token

QUANTITIES = ("mean", "variance", "peak", "peak_channel")
POINTS = {"before": QUANTITIES, "after": QUANTITIES, "normalized": ("mean", "variance")}
"""What is kept of each point, in the order of the file."""
_BYTES = (4, 4, 4, 8)
_TOKEN_COLUMNS = ("ids", "sequences", "positions")
_NO_ID = -1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where one chunk lies in the file."""

    starts: np.ndarray
    """Of each norm's rows."""
    counts: np.ndarray
    """How many each norm has."""
    tokens: dict[str, tuple[int, int]]
    """Stream -> start and number of its tokens."""


@dataclass(frozen=True, slots=True)
class LaidOut:
    """The rows of a chunk as they will lie in the file."""

    piece: _Piece
    content: bytes


@dataclass(slots=True)
class Spool:
    """A file of rows: in each chunk norm by norm, of a norm point by point, then the tokens."""

    file: BinaryIO
    size: int = 0
    """Bytes of all chunks."""
    _pieces: list[_Piece] = field(default_factory=list)

    def laid_out(self, chunk: Chunk) -> LaidOut:
        """Return the next chunk's part of the file."""
        content = bytearray()
        starts, counts = [], []
        for rows in chunk.rows:
            starts.append(self.size + len(content))
            counts.append(0 if rows is None else len(rows.single_rows()[0]))
            if rows is not None:
                content += _bytes_of_rows(rows)
        tokens: dict[str, tuple[int, int]] = {}
        for stream in _streams(chunk):
            own = [token for token in chunk.tokens if token.stream == stream]
            tokens[stream] = (self.size + len(content), len(own))
            content += _bytes_of_tokens(own)
        return LaidOut(_Piece(np.array(starts), np.array(counts), tokens), bytes(content))

    def append(self, laid: LaidOut) -> None:
        """Write a chunk, all or nothing; raises `OSError`."""
        take_room(self.file, len(laid.content))
        self.file.write(laid.content)
        self.size += len(laid.content)
        self._pieces.append(laid.piece)

    def streams(self) -> list[str]:
        """Return the names of the token streams."""
        return list(dict.fromkeys(name for piece in self._pieces for name in piece.tokens))

    def token_count(self, stream: str) -> int:
        """Return how many tokens a stream has."""
        return sum(piece.tokens.get(stream, (0, 0))[1] for piece in self._pieces)

    def count(self, norm: int) -> int:
        """Return how many rows a norm has."""
        return sum(int(piece.counts[norm]) for piece in self._pieces)

    def rows(self, norm: int, point: str, quantity: str) -> Iterator[bytes]:
        """Yield one quantity of a norm's rows, chunk by chunk."""
        place = QUANTITIES.index(quantity)
        for piece in self._pieces:
            count = int(piece.counts[norm])
            skipped = list(POINTS).index(point) * sum(_BYTES) + sum(_BYTES[:place])
            yield self._read(int(piece.starts[norm]) + skipped * count, _BYTES[place] * count)

    def tokens(self, stream: str, column: str) -> Iterator[bytes]:
        """Yield one column of a stream's tokens, chunk by chunk."""
        for piece in self._pieces:
            start, count = piece.tokens.get(stream, (0, 0))
            yield self._read(start + 8 * count * _TOKEN_COLUMNS.index(column), 8 * count)

    def _read(self, start: int, length: int) -> bytes:
        self.file.seek(start)
        return self.file.read(length)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _bytes_of_rows(rows: NormRows) -> bytes:
    single = rows.single_rows()
    unknown = np.full(len(single[0]), np.nan)
    scaled = rows.scaled or ScaledColumns(mean=unknown, variance=unknown)
    return b"".join((*map(_bytes_of, single), _floats(scaled.mean, scaled.variance)))


def _bytes_of(columns: Columns) -> bytes:
    floats = _floats(columns.mean, columns.variance, columns.peak)
    return floats + columns.channel.astype("<i8").tobytes()


def _floats(*columns: np.ndarray) -> bytes:
    with np.errstate(over="ignore"):  # what exceeds float32 becomes infinity there
        return b"".join(values.astype("<f4").tobytes() for values in columns)


def _bytes_of_tokens(tokens: Sequence[Token]) -> bytes:
    return b"".join(
        np.array([_column(token, column) for token in tokens], dtype="<i8").tobytes()
        for column in _TOKEN_COLUMNS
    )


def _streams(chunk: Chunk) -> list[str]:
    return list(dict.fromkeys(token.stream for token in chunk.tokens))


def _column(token: Token, column: str) -> int:
    if column == "ids":
        return _NO_ID if token.id is None else token.id
    return token.sequence if column == "sequences" else token.position
