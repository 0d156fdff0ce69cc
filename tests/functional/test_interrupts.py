"""A signal, a full disk or a closed pipe at any moment: what was done is kept, nothing is left."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from typer.testing import CliRunner

import normscope.cli.inspect_request as inspect_command
import normscope.cli.stats_answers as stats_command
from golden.inspections import EVERY, bert
from interrupting import Interruption, moments
from normscope.activations.chunks import Chunk, Columns, NormRows
from normscope.activations.subject import Subject
from normscope.cache.entries import keep
from normscope.cli.app import app
from normscope.cli.failures import answered
from normscope.cli.interrupts import interruptible
from normscope.cli.stats_progress import Follower
from normscope.cli.stats_save import SavedRows
from normscope.files import discard_pending, replace_file
from normscope.inspection import Uninspectable
from normscope.statistics import Statistics
from specimens.hostile import hostile_statistics

# A signal in the middle of a constructor leaves its file to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SIGNALS = [signal.SIGINT, signal.SIGTERM]
SAVED = ("save.csv", "save.jsonl", "save.safetensors", "save.parquet")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def small_disk(most: int = 1_000) -> Iterator[None]:
    """Let no file have more than so many bytes: what a full disk does to a write.

    No fixture: the limit would hold for what pytest itself writes of the test.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("existing", [None, b"before"])
def test_a_file_is_old_or_new_at_every_moment(
    tmp_path: Path, number: signal.Signals, existing: bytes | None
) -> None:
    path = tmp_path / "x.json"
    for moment in moments():
        path.unlink(missing_ok=True)
        if existing is not None:
            path.write_bytes(existing)
        interruption = Interruption(moment, ("normscope/files.py",), number)
        try:
            with interruptible():
                interruption.run(lambda: replace_file(path, b"after"))
        except KeyboardInterrupt:
            discard_pending()  # as at the end of the process
        assert names(tmp_path) in ([], ["x.json"])
        assert (path.read_bytes() if path.exists() else None) in (existing, b"after")
        if not interruption.sent:
            break
    assert moment > 20


def test_a_process_that_ends_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
from normscope.files import PendingFile
pending = PendingFile(Path({str(tmp_path / "x.json")!r}))
pending.file.write(b"half")
if os.fork() == 0:
    sys.exit()  # knows of the file, and it is not its own
os.wait()
assert len(os.listdir({str(tmp_path)!r})) == 1
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
    assert names(tmp_path) == []


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"before")
    with small_disk(), pytest.raises(OSError, match="File too large"):
        replace_file(tmp_path / "x.json", b"x" * 2_000)
    assert names(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_bytes() == b"before"


def chunk(sequence: int, tokens: int = 3) -> Chunk:
    """Return the rows of one sequence."""
    made = hostile_statistics(("the", "norm", "keeps")[:tokens])
    columns = Columns(
        mean=np.full(tokens, float(sequence)),
        variance=np.ones(tokens),
        peak=np.ones(tokens),
        channel=np.zeros(tokens, dtype=np.int64),
    )
    return Chunk(
        subject=Subject(target="made", versions=made.versions, model=made.model),
        norms=made.norms[:1],
        rows=(NormRows(before=columns, after=columns),),
        tokens=tuple(
            type(token)(sequence=sequence, position=token.position, id=1, text="the", special=False)
            for token in made.tokens
        ),
    )


def measured(
    _target: str, _request: object, saved: SavedRows | None, follower: Follower
) -> Statistics:
    for sequence in range(3):
        if saved is not None:
            saved.write(chunk(sequence))
        follower.measured(1, 3)
    return hostile_statistics(("the",))


def sequences_in(path: Path) -> set[int]:
    """Return which sequences a saved file holds; fails where it is no whole file."""
    if path.suffix == ".csv":
        lines = path.read_text().splitlines()[1:]
        assert all(line.count(",") == 20 for line in lines)
        return {int(line.split(",")[5]) for line in lines}
    if path.suffix == ".jsonl":
        return {json.loads(line)["sequence"] for line in path.read_text().splitlines()}
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return set(pyarrow.parquet.read_table(path)["sequence"].to_pylist())
    with safe_open(path, "np") as archive:
        return set(archive.get_tensor("token_sequences").tolist())


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("save.csv", signal.SIGTERM),
        ("save.jsonl", signal.SIGINT),
        ("save.safetensors", signal.SIGTERM),
        ("save.parquet", signal.SIGINT),
    ],
)
def test_what_was_saved_is_whole_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, name: str
) -> None:
    monkeypatch.setattr(stats_command, "_measure", measured)
    files = ("cli/stats_answers.py", "cli/stats_save.py", "normscope/files.py")
    seen: set[tuple[int, ...]] = set()
    for moment in moments():
        folder = tmp_path / str(moment)
        folder.mkdir()
        interruption = Interruption(moment, files, number)
        typed = ["stats", "made", "--input", "x", "--save", str(folder / name)]
        result = interruption.run(lambda typed=typed: CliRunner().invoke(app, typed))
        discard_pending()
        assert result.exit_code in (0, 130), result.output
        if result.exit_code == 130:
            assert "interrupted" in result.stderr
        assert names(folder) in ([], [name])
        if names(folder):
            found = sequences_in(folder / name)
            assert found == set(range(len(found)))
            seen.add(tuple(found))
        if not interruption.sent:
            break
    assert seen == {(0,), (0, 1), (0, 1, 2)}


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_an_answer_is_written_whole_or_not_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(inspect_command, "ask", lambda target, _request: EVERY[target])
    files = ("cli/inspect.py", "cli/inspect_answers.py", "cli/output.py", "normscope/files.py")
    statuses = set()
    for moment in moments():
        folder = tmp_path / str(moment)
        folder.mkdir()
        interruption = Interruption(moment, files, number)
        typed = ["inspect", "bert", "llama", "-f", "jsonl", "-o", str(folder / "x.jsonl")]
        result = interruption.run(lambda typed=typed: CliRunner().invoke(app, typed))
        discard_pending()
        statuses.add(result.exit_code)
        assert names(folder) in ([], ["x.jsonl"])
        for path in folder.iterdir():
            lines = path.read_text().splitlines()
            assert [json.loads(line)["target"] for line in lines] == ["type:bert", "type:llama"]
        if not interruption.sent:
            break
    assert statuses == {0, 130}


def much(_target: str, _request: object, saved: SavedRows | None, follower: Follower) -> Statistics:
    for sequence in range(400):
        if saved is not None:
            saved.write(chunk(sequence))
        follower.measured(1, 3)
    return hostile_statistics(("the",))


@pytest.mark.parametrize("name", SAVED)
def test_what_a_full_disk_took_is_kept_and_the_rest_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(stats_command, "_measure", much)
    path = tmp_path / name
    typed = ["stats", "made", "--input", "x", "--save", str(path)]
    with small_disk(1_000_000 if name.endswith("parquet") else 100_000):
        result = CliRunner().invoke(app, typed)
    assert (result.exit_code, result.stdout) == (2, "")
    found = sequences_in(path)
    held = len(found)
    assert found == set(range(held))
    assert 10 < held < 400
    assert result.stderr == (
        f"ended after {held} sequences ({3 * held:,} tokens); {path} holds "
        f"the first {held} sequences ({3 * held:,} tokens)\n"
        f"error: cannot write {path}: File too large\n"
    )
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", SAVED)
def test_a_disk_without_room_for_any_rows_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(stats_command, "_measure", much)
    (tmp_path / name).write_text("before")
    typed = ["stats", "made", "--input", "x", "--save", str(tmp_path / name)]
    with small_disk(100):
        result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert result.stderr == f"error: cannot write {tmp_path / name}: File too large\n"
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "before"


def test_an_output_that_the_disk_does_not_take_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_command, "ask", lambda target, _request: EVERY[target])
    (tmp_path / "x.json").write_text("before")
    typed = ["inspect", "bert", "-f", "json", "-o", str(tmp_path / "x.json")]
    with small_disk():
        result = CliRunner().invoke(app, typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: cannot write {tmp_path / 'x.json'}: File too large\n"
    assert names(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "before"


@pytest.mark.parametrize("option", ["--output", "--update-lock", "--update-baseline", "-f"])
def test_an_audit_that_the_disk_does_not_take_leaves_the_old_file(
    tmp_path: Path, option: str
) -> None:
    path = tmp_path / "written"
    path.write_text("before")
    writing = {
        "--output": ["-f", "json", "--output", str(path)],
        "--update-lock": ["--lock", str(path), "--update-lock"],
        "--update-baseline": ["--baseline", str(path), "--update-baseline"],
        "-f": ["-f", f"sarif:{path}"],
    }
    if option.startswith("--update"):
        path.unlink()
    with small_disk(10):
        result = CliRunner().invoke(app, ["audit", "demo:pre-norm", "--no-cache", *writing[option]])
    assert result.exit_code == 2, result.output
    assert f"cannot write {path}: File too large" in result.stderr
    assert "bug" not in result.stderr
    if option.startswith("--update"):
        assert names(tmp_path) == []
    else:
        assert names(tmp_path) == ["written"]
        assert path.read_text() == "before"


def test_a_cache_that_the_disk_does_not_take_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normscope.cache.entries import Code

    with small_disk():
        keep("k", bert(), Code(), tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("raised", [ImportError, RuntimeError, SystemError])
def test_an_interrupt_that_a_library_took_for_its_own_error_counts(
    raised: type[Exception],
) -> None:
    def ask() -> str:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise raised("of a library") from error
        return "never"

    with interruptible(), pytest.raises(KeyboardInterrupt):
        answered("x", ask)


def test_an_interrupt_that_was_swallowed_ends_before_the_next_target() -> None:
    def ask() -> str:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return "kept"
        return "never"

    with interruptible():
        assert answered("x", ask) == "kept"
        with pytest.raises(KeyboardInterrupt):
            answered("y", ask)
    assert isinstance(answered("z", lambda: Uninspectable), type)
