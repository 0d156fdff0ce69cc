"""`normscope stats` on many texts: batches, chunks, summaries, and what an interrupt leaves."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from safetensors import safe_open
from typer.testing import CliRunner, Result

from normscope.activations import batches, chunks
from normscope.cli import text_files
from normscope.cli.app import app
from saved_models import save_bert

TEXTS = tuple(
    " ".join(("the norm keeps variance in bounds the norm " * 2).split()[: 1 + (7 * number) % 10])
    for number in range(600)
)
"""Some 4,500 tokens: more than one window."""
FEW = TEXTS[:80]
"""600 tokens: three windows of the size that the tests in this process have."""


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_WINDOW", 250)
    usual = classmethod(lambda kind: kind(tokens=100))
    monkeypatch.setattr(batches.Budget, "usual", usual)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["stats", *arguments], input=stdin)


def document(*arguments: str) -> dict[str, object]:
    result = run(*arguments, "-f", "json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("texts") / "texts.txt"
    file.write_text("\n".join(FEW) + "\n")
    return str(file)


def test_batches_by_length_leave_the_order_of_the_input(bert: str, texts: str) -> None:
    usual = document(bert, "--input-file", texts)
    tokens: list[dict[str, int]] = usual["tokens"]  # type: ignore[assignment]
    places = [(token["sequence"], token["position"]) for token in tokens]
    assert places == sorted(places)
    assert len({sequence for sequence, _ in places}) == len(FEW)
    other = document(bert, "--input-file", texts, "--batch-size", "8")
    assert other["tokens"] == tokens
    # Sequences of about equal length run together: in the order of the input it would be 344.
    assert other["input"]["padding"] < 120  # type: ignore[index]
    single = document(bert, "--input-file", texts, "--batch-tokens", "30")
    assert single["input"]["padding"] < 60  # type: ignore[index]
    for found in (other, single):
        pairs = zip(usual["norms"], found["norms"], strict=True)  # type: ignore[call-overload]
        for one, two in pairs:
            assert one["before"]["variance"] == pytest.approx(two["before"]["variance"], rel=1e-4)


def test_a_run_that_is_too_large_to_hold_is_summarized(
    bert: str, texts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = document(bert, "--input-file", texts)
    monkeypatch.setattr(chunks, "MOST_ROWS", 1500)
    short = document(bert, "--input-file", texts)
    left_out = short["left_out"]
    assert left_out["lists_over_rows"] == 1500  # type: ignore[index]
    error = left_out["quantile_error"]  # type: ignore[index]
    assert 0 < error < 0.003
    assert short["tokens"] == []
    assert short["input"] == whole["input"]
    pairs = zip(whole["norms"], short["norms"], strict=True)  # type: ignore[call-overload]
    for one, two in pairs:
        assert (two["before"], two["after"]) == (None, None)
        for point in ("before", "after"):
            for quantity in ("variance", "peak"):
                exact, found = one["summary"][point][quantity], two["summary"][point][quantity]
                assert found["median"] == pytest.approx(exact["median"], rel=1.01 * error)
                assert found["p99"] == pytest.approx(exact["p99"], rel=2 * error)
                assert found["max"] == exact["max"]
                assert found["at_token"] == exact["at_token"]
                assert found["token"] == whole["tokens"][exact["at_token"]]  # type: ignore[index]
            assert one["summary"][point]["pooled"] == pytest.approx(two["summary"][point]["pooled"])
    shown = run(bert, "--input-file", texts)
    assert "summarized: median and p99 to 0.3%, all else exact" in shown.stdout
    refused = run(bert, "--input-file", texts, "--view", "heatmap")
    assert refused.exit_code == 2
    assert "over 1,500 rows" in refused.stderr


def test_a_streams_lines_are_read_once_for_several_targets(bert: str) -> None:
    result = run(bert, bert, "--input-file", "-", "-f", "jsonl", stdin="the norm\nkeeps\n")
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert first == second
    assert first["input"]["sequences"] == 2


def test_a_stream_without_a_text_is_a_usage_error(bert: str) -> None:
    result = run(bert, "--input-file", "-", stdin="\n\n")
    assert result.exit_code == 2
    assert "error: standard input holds no text" in result.stderr


def test_a_long_text_is_refused_by_its_number(bert: str, texts: str, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text(Path(texts).read_text() + " ".join(["norm"] * 20) + "\n")
    saved = tmp_path / "out.csv"
    result = run(bert, "--input-file", str(file), "--save", str(saved))
    assert result.exit_code == 2
    assert "input 81 has 22 tokens, and the model has 12 positions" in result.stderr
    cut = run(bert, "--input-file", str(file), "--max-length", "12", "--save", str(saved))
    assert cut.exit_code == 0
    assert "warning: 1 sequence was cut to 12 tokens" in cut.stderr


# Files by chunks.


def test_the_rows_of_many_chunks_are_one_archive(
    bert: str, texts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = document(bert, "--input-file", texts)
    monkeypatch.setattr(chunks, "MOST_ROWS", 1500)
    file = tmp_path / "out.safetensors"
    assert run(bert, "--input-file", texts, "--save", str(file)).exit_code == 0
    tokens: list[dict[str, int]] = found["tokens"]  # type: ignore[assignment]
    with safe_open(file, framework="np") as archive:
        for point in ("before", "after"):
            for quantity in ("mean", "variance", "peak", "peak_channel"):
                rows = archive.get_tensor(f"{point}.{quantity}")
                assert rows.shape == (5, len(tokens))
                for row, norm in zip(rows, found["norms"], strict=True):  # type: ignore[call-overload]
                    assert row.tolist() == pytest.approx(norm[point][quantity], rel=1e-6)
        assert archive.get_tensor("token_ids").tolist() == [token["id"] for token in tokens]
        sequences = archive.get_tensor("token_sequences").tolist()
        assert sequences == [token["sequence"] for token in tokens]
        metadata = json.loads(archive.metadata()["normscope"])
    assert len(metadata["tokens"]) == len(tokens)
    assert list(tmp_path.iterdir()) == [file]


def test_parquet_has_the_rows_of_csv(bert: str, texts: str, tmp_path: Path) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("parquet", "jsonl")}
    for file in files.values():
        result = run(bert, "--input-file", texts, "--save", str(file))
        assert result.exit_code == 0, result.stderr
    table = pyarrow.parquet.read_table(files["parquet"])
    lines = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    assert pyarrow.parquet.ParquetFile(files["parquet"]).num_row_groups == 3
    assert table.num_rows == len(lines)
    for row, line in zip(table.to_pylist()[::37], lines[::37], strict=True):
        assert set(row) == set(line)
        assert {key: row[key] for key in row if "_" not in key} == {
            key: line[key] for key in line if "_" not in key
        }
        assert row["before_variance"] == pytest.approx(line["before_variance"])
        assert row["after_peak_channel"] == line["after_peak_channel"]
        assert row["normalized_mean"] == 0.0
        assert row["normalized_variance"] == pytest.approx(line["normalized_variance"])


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("pyarrow", ("--save", "out.parquet"), "parquet"),
        ("matplotlib", ("--plot", "out.png"), "plot"),
    ],
)
def test_a_missing_package_is_said_before_any_work(
    package: str, arguments: tuple[str, str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = run("/nowhere", "-i", "the", *arguments)
    assert result.exit_code == 3
    assert f"needs the package {package}\nhint: pip install 'normscope[{extra}]'" in result.stderr
    assert "nowhere" not in result.stderr


# Interrupts.


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_interrupt_leaves_whole_sequences(
    bert: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files.TextFile, "__iter__", interrupted_after(FEW))
    file = tmp_path / f"out.{suffix}"
    result = run(bert, "--input-file", "-", "--save", str(file), stdin="")
    assert result.exit_code == 130
    assert result.stdout == ""
    lines = file.read_text().splitlines()[suffix == "csv" :]
    rows = len(lines)
    assert rows % 5 == 0
    assert f"({rows // 5:,} tokens)\n" in result.stderr
    assert list(tmp_path.iterdir()) == [file]


def interrupted_after(texts: tuple[str, ...]) -> object:
    def lines(_self: object) -> Iterator[str]:
        yield from texts
        raise KeyboardInterrupt

    return lines


def test_an_interrupt_before_the_first_rows_leaves_nothing(
    bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files.TextFile, "__iter__", interrupted_after(TEXTS[:5]))
    result = run(bert, "--input-file", "-", "--save", str(tmp_path / "out.csv"), stdin="")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_whole_sequences(bert: str, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    too_long = "norm " * 600
    run_text = "\n".join((*FEW, too_long, ""))
    result = run(bert, "--input-file", "-", "--save", str(file), stdin=run_text)
    assert result.exit_code == 2
    rows = len(file.read_text().splitlines()) - 1
    assert rows % 5 == 0
    ended, error = result.stderr.splitlines()[:2]
    assert ended.startswith("ended after ")
    assert ended.endswith(f"({rows // 5:,} tokens)")
    assert error.startswith(f"error: input {len(FEW) + 1} has ")
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_before_the_first_rows_leaves_nothing(bert: str, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    result = run(bert, "--input", "norm " * 600, "--save", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: input 1 has ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "suffix"), [(signal.SIGINT, "safetensors"), (signal.SIGTERM, "parquet")]
)
def test_a_signal_ends_the_process_with_a_valid_file(
    bert: str, number: signal.Signals, suffix: str, tmp_path: Path
) -> None:
    """On a terminal, so that there is a bar as well."""
    file = tmp_path / f"out.{suffix}"
    reader, terminal = pty.openpty()
    command = ["stats", bert, "--input-file", "-", "--save", str(file)]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "normscope", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "COLUMNS": "120"},
    ) as process:
        os.close(terminal)
        assert process.stdin is not None
        process.stdin.write("\n".join((*TEXTS, *TEXTS, "")).encode())
        process.stdin.flush()
        # More than one window: the rows of the first are in the file by then.
        said = read_until(reader, lambda said: max(tokens_said(said)) > 4200)
        process.send_signal(number)
        said += read_until(reader, lambda said: "holds the first" in said and "tokens)" in said)
        assert process.wait(60) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(reader)
    assert re.search(r"tokens, [\d,]+/s", said)
    assert 4000 < saved_tokens(file) <= max(tokens_said(said))
    assert (
        f"holds the first {saved_sequences(file):,} sequences ({saved_tokens(file):,} tokens)"
        in (" ".join(said.split()))
    )
    assert list(tmp_path.iterdir()) == [file]


def read_until(reader: int, found: Callable[[str], bool]) -> str:
    said = ""
    while not found(said):
        said += os.read(reader, 4096).decode()
    return said


def tokens_said(said: str) -> list[int]:
    return [0, *(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) tokens", said))]


def saved_tokens(file: Path) -> int:
    return len(saved_column(file))


def saved_sequences(file: Path) -> int:
    return len(set(saved_column(file)))


def saved_column(file: Path) -> list[int]:
    """Return the sequence of each token."""
    if file.suffix == ".safetensors":
        with safe_open(file, framework="np") as archive:
            found: list[int] = archive.get_tensor("token_sequences").tolist()
            assert archive.get_tensor("before.mean").shape == (5, len(found))
            return found
    table = pyarrow.parquet.read_table(file, columns=["sequence"])
    return table["sequence"].to_pylist()[::5]


def test_a_pipe_gets_no_bar(bert: str, texts: str) -> None:
    result = run(bert, "--input-file", texts)
    assert result.exit_code == 0
    assert result.stderr == ""
