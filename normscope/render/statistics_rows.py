"""The rows of a run -> one line a row, as CSV or JSON lines, token by token."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from normscope.activations.chunks import Chunk, Columns
from normscope.activations.row_table import RowTable, RowTables
from normscope.files import take_room
from normscope.render.plain import Json
from normscope.render.statistics_documents import nine_digits
from normscope.render.visible import shortened
from normscope.statistics import Token

_QUANTITIES = ("mean", "variance", "peak", "peak_channel")
COLUMNS = (
    "norm",
    "call",
    "role",
    "kind",
    "stream",
    "sequence",
    "position",
    "id",
    "text",
    "special",
    "row",
    *(f"{point}_{quantity}" for point in ("before", "after") for quantity in _QUANTITIES),
    "normalized_mean",
    "normalized_variance",
)


def csv_of_rows(rows: RowTable, *, header: bool) -> str:
    r"""Return one line a row, below a header; what is not known is left empty.

    A text that a spreadsheet would take for a formula has a `'` before it, and a carriage return,
    at which some readers end a line, is written `\r`. The id tells which token it is.
    """
    target = io.StringIO()
    writer = csv.DictWriter(target, COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(
        {name: _cell(value) if isinstance(value, str) else value for name, value in line.items()}
        for line in _lines(rows)
    )
    return target.getvalue()


_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a formula begins with, by the Open Web Application Security Project's page on CSV
injection."""

_LONGEST_CELL = 30_000
"""Characters; Excel takes 32,767, and Python's own reader 131,072."""


def _cell(text: str) -> str:
    text = shortened(text, _LONGEST_CELL)
    quoted = f"'{text}" if text.startswith(_FORMULA) else text
    return quoted.replace("\r", r"\r").replace("\0", r"\x00")


def json_lines_of_rows(rows: RowTable) -> str:
    """Return one JSON object a row."""
    lines = (json.dumps(row, sort_keys=True, allow_nan=False) for row in _lines(rows))
    return "".join(f"{line}\n" for line in lines)


def _lines(rows: RowTable) -> Iterator[dict[str, Json]]:
    before, after = _numbers("before", rows.before), _numbers("after", rows.after)
    places = zip(rows.norm.tolist(), rows.row.tolist(), before, after, _scaled(rows), strict=True)
    for index, (number, row, in_numbers, out_numbers, scaled) in enumerate(places):
        norm = rows.norms[number]
        yield {
            "norm": norm.name,
            "call": norm.call,
            "role": norm.role.value,
            "kind": norm.kind,
            "stream": norm.stream or None,
            **_token(rows.token_at(index)),
            "row": row,
            **in_numbers,
            **out_numbers,
            **scaled,
        }


def _token(token: Token | None) -> dict[str, Json]:
    if token is None:
        return dict.fromkeys(("sequence", "position", "id", "text", "special"))
    return {
        "sequence": token.sequence,
        "position": token.position,
        "id": token.id,
        "text": token.text,
        "special": token.special,
    }


def _numbers(point: str, columns: Columns) -> Iterator[dict[str, Json]]:
    names = [f"{point}_{quantity}" for quantity in _QUANTITIES]
    quantities = (columns.mean, columns.variance, columns.peak, columns.channel)
    for *values, channel in zip(*(values.tolist() for values in quantities), strict=True):
        numbers = [*(nine_digits(value) for value in values), channel]
        yield dict(zip(names, numbers, strict=True))


def _scaled(rows: RowTable) -> Iterator[dict[str, Json]]:
    scaled = (rows.scaled.mean.tolist(), rows.scaled.variance.tolist(), rows.has_scaled.tolist())
    for mean, variance, known in zip(*scaled, strict=True):
        yield {
            "normalized_mean": nine_digits(mean) if known else None,
            "normalized_variance": nine_digits(variance) if known else None,
        }


@dataclass(slots=True)
class TextWriter:
    """Writes the rows of a run as they come."""

    file: BinaryIO
    as_csv: bool
    _tables: RowTables = field(default_factory=RowTables)
    _begun: bool = False

    def write(self, chunk: Chunk) -> None:
        """Write the rows of a chunk, all or none; raises `OSError`."""
        rows = self._tables.table_of(chunk)
        text = (
            csv_of_rows(rows, header=not self._begun) if self.as_csv else json_lines_of_rows(rows)
        )
        content = text.encode("utf-8", "backslashreplace")
        take_room(self.file, len(content))
        self.file.write(content)
        self._begun = True

    def finish(self) -> None:
        """Cut what a failed write has left of the room for it."""
        self.file.truncate()

    def close(self) -> None:
        """Nothing waits elsewhere."""
