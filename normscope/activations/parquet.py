"""Chunks -> a parquet file: one line a row, a row group a chunk; needs the extra `parquet`."""

from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from normscope.activations.chunks import Chunk, Columns
from normscope.activations.row_table import RowTable, RowTables
from normscope.files import take_room

_POINTS = ("before", "after")


@dataclass(slots=True)
class ParquetWriter:
    """Writes a parquet file with the columns of a `.csv`; what is not known is null."""

    file: BinaryIO
    _tables: RowTables = field(default_factory=RowTables)
    _writer: Any = None
    _footer: int = 1 << 12
    """Bytes that the footer takes at most."""

    def write(self, chunk: Chunk) -> None:
        """Write a chunk as one row group, all or none; raises `OSError`.

        A group that was begun cannot be taken back, and without a footer the file is nothing: room
        for both is taken first.
        """
        rows = self._tables.table_of(chunk)
        table = _table(rows)
        self._footer += _most_of_footer(table, rows)
        take_room(self.file, _most_of_group(table) + self._footer)
        if self._writer is None:
            parquet = import_module("pyarrow.parquet")
            self._writer = parquet.ParquetWriter(self.file, table.schema)
        self._writer.write_table(table, row_group_size=max(1, len(rows)))

    def finish(self) -> None:
        """Write the footer, without which the file cannot be read, and cut the room left over."""
        if self._writer is not None:
            self._writer.close()
            self.file.truncate()

    def close(self) -> None:
        """Let go of a writer that was not finished, which would finish itself later, in vain."""
        if self._writer is not None:
            with suppress(OSError, ValueError):  # the file is closed, or the disk full
                self._writer.close()


def _most_of_group(table: Any) -> int:
    """Return how many bytes a row group takes at most: twice its values, once in dictionaries."""
    return 2 * int(table.nbytes) + 4096 * int(table.num_columns)


def _most_of_footer(table: Any, rows: RowTable) -> int:
    """Return how many bytes the footer says of a row group at most.

    It names each column, where it lies, and its least and greatest value, unless that is longer.
    """
    words = [word for norm in rows.norms for word in (norm.name, norm.kind, norm.role.value)]
    longest = max(map(len, (*words, *(token.text or "" for token in rows.tokens))), default=0)
    bounds = 2 * 5 * min(_LONGEST_BOUND, 6 * longest)
    return _OF_A_COLUMN * int(table.num_columns) + bounds


_OF_A_COLUMN = 300
_LONGEST_BOUND = 4096
"""Bytes of a text beyond which parquet's footer leaves it out."""


def _table(rows: RowTable) -> Any:
    pa: Any = import_module("pyarrow")
    norms, tokens = rows.norms, rows.tokens
    columns: dict[str, Any] = {
        "norm": _repeated([norm.name for norm in norms], rows.norm),
        "call": pa.array(np.array([norm.call for norm in norms])[rows.norm], pa.int32()),
        "role": _repeated([norm.role.value for norm in norms], rows.norm),
        "kind": _repeated([norm.kind for norm in norms], rows.norm),
        "stream": _repeated([norm.stream or None for norm in norms], rows.norm),
    }
    places = pa.array(rows.token, pa.int32(), mask=rows.token < 0)
    for name, kind in _TOKEN_COLUMNS:
        values = [_storable(getattr(token, name)) for token in tokens]
        columns[name] = pa.array(values, getattr(pa, kind)()).take(places)
    columns["row"] = pa.array(rows.row, pa.int64())
    for point, moments in zip(_POINTS, (rows.before, rows.after), strict=True):
        columns |= {f"{point}_{name}": array for name, array in _moments(moments).items()}
    unknown = ~rows.has_scaled
    columns["normalized_mean"] = pa.array(rows.scaled.mean, pa.float64(), mask=unknown)
    columns["normalized_variance"] = pa.array(rows.scaled.variance, pa.float64(), mask=unknown)
    return pa.table(columns)


_TOKEN_COLUMNS = (
    ("sequence", "int64"),
    ("position", "int64"),
    ("id", "int64"),
    ("text", "string"),
    ("special", "bool_"),
)


def _storable(value: Any) -> Any:
    """Parquet holds no half of a character, which a vocabulary may."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _repeated(words: list[str | None] | list[str], places: np.ndarray) -> Any:
    """Return words as a dictionary column: each is stored once."""
    pa: Any = import_module("pyarrow")
    kept = list(dict.fromkeys(word for word in words if word is not None))
    known = {word: index for index, word in enumerate(kept)}
    indices = np.array([known.get(word or "", -1) for word in words])[places]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32(), mask=indices < 0), pa.array(map(_storable, kept), pa.string())
    )


def _moments(columns: Columns) -> dict[str, Any]:
    pa: Any = import_module("pyarrow")
    return {
        "mean": pa.array(columns.mean, pa.float64()),
        "variance": pa.array(columns.variance, pa.float64()),
        "peak": pa.array(columns.peak, pa.float64()),
        "peak_channel": pa.array(columns.channel, pa.int64()),
    }
