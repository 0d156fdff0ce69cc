"""The rows of `--save` with tokens that would steer a spreadsheet, a reader or an encoder."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from safetensors import safe_open

from normscope.activations.archive import ArchiveWriter
from normscope.activations.chunks import Chunk, Columns, NormRows
from normscope.activations.parquet import ParquetWriter
from normscope.activations.subject import Subject
from normscope.render.statistics_rows import TextWriter
from normscope.render.visible import shortened
from specimens.hostile import HOSTILE, LONG, hostile_statistics

TEXTS = (
    "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "a\rb", "a\nb",
    'a"b,c', "nul\0nul", "\ud800", HOSTILE, "the", "'s", LONG,
)  # fmt: skip


@pytest.fixture
def chunk() -> Chunk:
    made = hostile_statistics(TEXTS)
    count = len(TEXTS)
    columns = Columns(
        mean=np.full(count, -1.5),
        variance=np.full(count, np.nan),
        peak=np.full(count, np.inf),
        channel=np.zeros(count, dtype=np.int64),
    )
    rows = NormRows(before=columns, after=columns)
    subject = Subject(target=HOSTILE, versions=made.versions, model=made.model)
    return Chunk(subject=subject, tokens=made.tokens, norms=made.norms[:1], rows=(rows,))


def written(chunk: Chunk, *, as_csv: bool) -> bytes:
    file = io.BytesIO()
    writer = TextWriter(file, as_csv=as_csv)
    writer.write(chunk)
    writer.finish()
    return file.getvalue()


def test_no_cell_of_a_csv_is_a_formula(chunk: Chunk) -> None:
    content = written(chunk, as_csv=True)
    text = content.decode("utf-8")
    assert "\r" not in text
    assert "\0" not in text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == [str(number) for number in range(len(TEXTS))]
    for row in rows:
        assert not row["text"].startswith(("=", "+", "-", "@", "\t", "\n", "\uff1d"))
        assert (row["before_mean"], row["before_variance"]) == ("-1.5", "NaN")
    assert rows[0]["text"] == f"'{TEXTS[0]}"
    assert [row["text"] for row in rows[14:]] == ["the", "'s", shortened(LONG, 30_000)]


def test_each_line_of_jsonl_gives_the_text_back(chunk: Chunk) -> None:
    content = written(chunk, as_csv=False)
    assert content.isascii()
    assert [json.loads(line)["text"] for line in content.splitlines()] == list(TEXTS)


def test_parquet_holds_every_text(chunk: Chunk, tmp_path: Path) -> None:
    with (tmp_path / "x.parquet").open("wb") as file:
        writer = ParquetWriter(file)
        writer.write(chunk)
        writer.finish()
    texts = pyarrow.parquet.read_table(tmp_path / "x.parquet")["text"].to_pylist()
    assert texts[12] == r"\ud800"
    assert [*texts[:12], *texts[14:]] == [*TEXTS[:12], *TEXTS[14:]]


def test_safetensors_can_be_read_back(chunk: Chunk, tmp_path: Path) -> None:
    with (tmp_path / "x.safetensors").open("wb") as file:
        writer = ArchiveWriter(file, tmp_path)
        writer.write(chunk)
        writer.finish()
        writer.close()
    with safe_open(tmp_path / "x.safetensors", "np") as archive:
        told = json.loads(archive.metadata()["normscope"])
        assert archive.get_tensor("before.mean").shape == (1, len(TEXTS))
    assert [token["text"] for token in told["tokens"]] == list(TEXTS)
