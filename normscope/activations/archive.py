"""Chunks -> a safetensors file: every row, as tensors, at constant memory.

The format has no append and its tensors are [norms, tokens], so that the rows wait in a file
without a name and are copied behind the header when their number is known.
"""

import json
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from normscope.activations.archive_metadata import TokenIndex, archive_metadata, most_bytes
from normscope.activations.chunks import Chunk
from normscope.activations.spool import POINTS, Spool
from normscope.files import take_room
from normscope.statistics import NormStatistics

_SAFE_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One tensor of the file, and where its rows wait."""

    name: str
    norms: tuple[int, ...]
    """Those whose rows it stacks; none for the columns of the tokens."""
    point: str
    quantity: str
    shape: tuple[int, ...]
    stream: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers of eight bytes."""
        return self.quantity not in ("mean", "variance", "peak")

    def size(self) -> int:
        count = 8 if self.is_whole else 4
        for length in self.shape:
            count *= length
        return count


@dataclass(slots=True)
class ArchiveWriter:
    """Writes a safetensors file.

    `before.mean`, `before.variance`, `before.peak`, `before.peak_channel`, `after.…` and
    `normalized.mean`, `normalized.variance` (NaN where these do not follow from the input) are
    [norms, tokens] for the norms with one row a token; any other norm has
    `rows/<name>#<call>/before.mean` …, [tokens, rows] or [rows]. `token_ids` (-1 where a token has
    no id), `token_sequences` and `token_positions` are [tokens]. A model with tokens on both sides
    has two such sets, under `encoder/` and `decoder/`. The metadata `normscope` is JSON: norms,
    tokens (beyond 65,536 only the text of each id), versions.
    """

    file: BinaryIO
    folder: Path
    """Where the rows wait."""
    _spool: Spool = field(init=False)
    _tokens: TokenIndex = field(default_factory=TokenIndex)
    _last: Chunk | None = None

    def __post_init__(self) -> None:
        # Closed by `close`; it has no name, so that a killed process leaves nothing behind.
        self._spool = Spool(tempfile.TemporaryFile(dir=self.folder))  # noqa: SIM115

    def write(self, chunk: Chunk) -> None:
        """Set the rows of a chunk aside, with room for them in the file; raises `OSError`.

        If either is not to be had the chunks before can still be written.
        """
        laid = self._spool.laid_out(chunk)
        described = most_bytes(chunk, self._tokens)
        take_room(self.file, described + self._spool.size + len(laid.content))
        self._spool.append(laid)
        self._tokens.add(chunk.tokens)
        self._last = chunk

    def finish(self) -> None:
        """Write the file, and cut the room left over."""
        if self._last is None:
            return
        norms = self._last.norms
        tensors = sorted(_tensors(norms, self._spool), key=lambda item: not item.is_whole)
        self.file.write(_header(tensors, archive_metadata(self._last, self._tokens)))
        for tensor in tensors:
            self._copy(tensor)
        self.file.truncate()

    def _copy(self, tensor: _Tensor) -> None:
        if not tensor.norms:
            for piece in self._spool.tokens(tensor.stream, tensor.quantity):
                self.file.write(piece)
        for norm in tensor.norms:
            for piece in self._spool.rows(norm, tensor.point, tensor.quantity):
                self.file.write(piece)

    def close(self) -> None:
        """Let go of the rows."""
        self._spool.close()


def _tensors(norms: Sequence[NormStatistics], spool: Spool) -> Iterator[_Tensor]:
    kept = [
        index for index, norm in enumerate(norms) if norm.problem is None and spool.count(index)
    ]
    streams = spool.streams() or [""]
    for stream in streams:
        prefix = f"{stream}/" if stream else ""
        count = spool.token_count(stream)
        for column in ("ids", "sequences", "positions"):
            yield _Tensor(f"{prefix}token_{column}", (), "", column, (count,), stream)
        table = tuple(index for index in kept if _in_table(norms[index], stream))
        if table:
            yield from _points(prefix, table, (len(table), count))
    for index in kept:
        norm = norms[index]
        if norm.rows_per_token != 1:
            yield from _points(
                f"rows/{norm.name}#{norm.call}/", (index,), _shape(norm, spool.count(index))
            )


def _in_table(norm: NormStatistics, stream: str) -> bool:
    return norm.rows_per_token == 1 and norm.stream == stream


def _shape(norm: NormStatistics, count: int) -> tuple[int, ...]:
    per_token = norm.rows_per_token
    return (count // per_token, per_token) if per_token else (count,)


def _points(prefix: str, norms: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[_Tensor]:
    for point, quantities in POINTS.items():
        for quantity in quantities:
            yield _Tensor(f"{prefix}{point}.{quantity}", norms, point, quantity, shape)


def _header(tensors: Sequence[_Tensor], metadata: object) -> bytes:
    """Return the length and the JSON that a safetensors file begins with."""
    described: dict[str, object] = {"__metadata__": {"normscope": json.dumps(metadata)}}
    start = 0
    for tensor in tensors:
        described[tensor.name] = {
            "dtype": "I64" if tensor.is_whole else "F32",
            "shape": tensor.shape,
            "data_offsets": (start, start + tensor.size()),
        }
        start += tensor.size()
    text = json.dumps(described).encode()
    text += b" " * (-len(text) % _SAFE_ALIGNMENT)
    return struct.pack("<Q", len(text)) + text
