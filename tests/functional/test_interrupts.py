"""A signal, a full disk or a closed pipe at any moment: what was done is kept, nothing is left."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file may have more than 1,000 bytes: what a full disk does to a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
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


def test_a_failed_write_leaves_nothing(tmp_path: Path, small_disk: None) -> None:
    (tmp_path / "x.json").write_bytes(b"before")
    with pytest.raises(OSError, match="File too large"):
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


@pytest.mark.parametrize("name", SAVED)
def test_rows_that_the_disk_does_not_take_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_disk: None, name: str
) -> None:
    def much(_target: str, _request: object, saved: SavedRows, _follower: object) -> Statistics:
        for sequence in range(200):
            saved.write(chunk(sequence))
        return hostile_statistics(("the",))

    monkeypatch.setattr(stats_command, "_measure", much)
    typed = ["stats", "made", "--input", "x", "--save", str(tmp_path / name)]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert f"cannot write {tmp_path / name}: File too large" in result.stderr
    assert "bug" not in result.stderr
    assert names(tmp_path) == []


def test_an_output_that_the_disk_does_not_take_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_disk: None
) -> None:
    monkeypatch.setattr(inspect_command, "ask", lambda target, _request: EVERY[target])
    (tmp_path / "x.json").write_text("before")
    typed = ["inspect", "bert", "-f", "json", "-o", str(tmp_path / "x.json")]
    result = CliRunner().invoke(app, typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: cannot write {tmp_path / 'x.json'}: File too large\n"
    assert names(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "before"


def test_a_cache_that_the_disk_does_not_take_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_disk: None
) -> None:
    from normscope.cache.entries import Code

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


def started_without(closed: list[int], arguments: list[str]) -> list[str]:
    """Return a Python that begins without some of its standard streams."""
    typed = [sys.executable, "-P", *arguments]
    closing = "".join(f"os.close({number}); " for number in closed)
    return [sys.executable, "-c", f"import os; {closing}os.execv({sys.executable!r}, {typed!r})"]


@pytest.mark.parametrize(
    ("closed", "typed", "status", "told"),
    [
        (1, ["rule", "NS101"], 2, "error: cannot write the results: standard output is closed\n"),
        (2, ["rule", "NS101"], 0, ""),
        (2, ["rule", "NS999"], 2, ""),
        (0, ["inspect", "-"], 2, "error: standard input names no target\n"),
        (0, ["stats", "--input", "-"], 2, "error: standard input is empty\n"),
    ],
)
def test_a_stream_that_the_shell_has_closed(
    closed: int, typed: list[str], status: int, told: str
) -> None:
    program = started_without([closed], ["-m", "normscope", *typed])
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert told in ended.stderr
    assert "bug" not in ended.stderr


def test_a_closed_stream_takes_no_file_that_is_opened_next(tmp_path: Path) -> None:
    program = f"""
import os, sys
from normscope.cli.streams import open_closed_streams
open_closed_streams()
file = open({str(tmp_path / "x")!r}, "w")
os.write(2, b"native words")
os.write(1, b"native words")
"""
    subprocess.run(started_without([1, 2], ["-c", program]), check=True)
    assert (tmp_path / "x").read_text() == ""


def test_an_interrupt_before_any_command_says_nothing() -> None:
    program = (
        "import os, signal, sys, runpy\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'normscope.cli.app': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('normscope', run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_the_status_is_130_also_where_an_import_was_interrupted() -> None:
    program = """
import os, signal
import normscope.cli.rule as command
from normscope.cli.app import main
def raising(*_):
    exec("import os, signal; os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(1000)]")
command._text_of = raising
main()
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program, "rule"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")


def test_a_pipe_that_closes_between_two_answers_ends_quietly() -> None:
    program = f"""
import os, sys
sys.path.append({str(Path(__file__).parents[1])!r})
import normscope.cli.inspect_request as command
from golden.inspections import EVERY
from normscope.cli.app import main
def ask(target, request):
    if target == "llama":
        sys.stdin.readline()
    return EVERY[target]
command.ask = ask
main()
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, "inspect", "bert", "llama", "t5", "-f", "jsonl"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["target"] == "type:bert"
        process.stdout.close()
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0
