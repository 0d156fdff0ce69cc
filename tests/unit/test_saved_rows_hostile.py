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
from normscope.activations.chunks import Chunk, Columns, NormRows, Subject
from normscope.activations.parquet import ParquetWriter
from normscope.render.statistics_rows import TextWriter
from specimens.hostile import HOSTILE, LONG, hostile_statistics

TEXTS = (
    "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "a\rb", "a\nb",
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
    subject = Subject(target=HOSTILE, versions=made.versions, model=made.model, device="cpu")
    return Chunk(subject=subject, tokens=made.tokens, norms=made.norms[:1], rows=(rows,))
