"""Files that are none, names that lead elsewhere, and places where nothing may be written."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from typer.testing import CliRunner, Result

from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.cli import output as writer
from normscope.cli.app import app
from normscope.errors import FailureKind, NormscopeError
from normscope.files import replace_file
from normscope.pipeline import inspect_checkpoint
from saved_models import save_bert

BERT = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
BERT |= {"intermediate_size": 32, "vocab_size": 10, "max_position_embeddings": 12}


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Fail what waits for a pipe, in place of waiting along."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_bert(tmp_path_factory.mktemp("saved") / "bert"))


@pytest.fixture
def bert(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "bert"))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def put(path: Path, what: str) -> None:
    """Put something in place of a file that only looks like one."""
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/zero", "loop": path.name, "nowhere": "gone"}[what])


NO_FILES = ["pipe", "device", "folder", "loop", "nowhere"]


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", ["config.json", "adapter_config.json"])
def test_a_config_that_is_no_file(name: str, what: str, tmp_path: Path) -> None:
    put(tmp_path / name, what)
    answer = inspect_checkpoint(str(tmp_path))
    assert answer.kind is FailureKind.CORRUPT
    named = inspect_checkpoint(str(tmp_path / name))
    assert named.kind in {FailureKind.CORRUPT, FailureKind.NOT_FOUND, FailureKind.NO_CONFIG}


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize(
    "name", ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"]
)
def test_weights_that_are_no_file(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT))
    put(tmp_path / name, what)
    result = run("inspect", tmp_path, "--weights", "norms", "-f", "json", "--no-cache")
    assert json.loads(result.stdout)["kind"] == "corrupt"


@pytest.mark.parametrize("what", NO_FILES)
def test_a_gguf_file_that_is_none(what: str, tmp_path: Path) -> None:
    put(tmp_path / "x.gguf", what)
    answer = inspect_checkpoint(str(tmp_path / "x.gguf"))
    assert answer.kind in {FailureKind.CORRUPT, FailureKind.NOT_FOUND, FailureKind.NO_CONFIG}


def measured(target: Path) -> NormscopeError:
    with pytest.raises(NormscopeError) as caught:
        measure_checkpoint(str(target), MeasureOptions(texts=("the norm",)))
    return caught.value


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "model.safetensors"])
def test_what_is_measured_with_must_be_files(name: str, what: str, bert: Path) -> None:
    put(bert / name, what)
    if name == "tokenizer_config.json":  # the words are enough
        assert measure_checkpoint(str(bert), MeasureOptions(texts=("the norm",))).norms
    else:
        assert measured(bert).kind in {FailureKind.CORRUPT, FailureKind.NO_INPUTS}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "[" * 5000 + "]" * 5000),
        ("tokenizer_config.json", '{"a":' + "[" * 5000 + "]" * 5000 + "}"),
        ("tokenizer.json", '{"version": "1.0", "added_tokens": [], "model": {"vocab": -1}}'),
    ],
    ids=["deep", "deep settings", "of the wrong kind"],
)
def test_a_tokenizer_that_cannot_be_read(name: str, content: str, bert: Path) -> None:
    (bert / name).write_text(content)
    known = {FailureKind.CORRUPT, FailureKind.TOO_LARGE, FailureKind.NO_INPUTS}
    assert measured(bert).kind in known


def test_a_tokenizer_of_two_gigabytes(bert: Path) -> None:
    with (bert / "tokenizer.json").open("wb") as file:
        file.truncate(2_000_000_000)
    assert measured(bert).kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize(
    "name", ["../other/model.safetensors", "/etc/hostname", "..", "a/b", "a\\b", "a\0b", ""]
)
def test_an_index_that_leads_outside(name: str, bert: Path, saved: Path) -> None:
    shutil.copytree(saved, bert.parent / "other")
    (bert / "model.safetensors").rename(bert / "model-1.safetensors")
    (bert / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"embeddings.LayerNorm.weight": name}})
    )
    assert inspect_checkpoint(str(bert)).kind is FailureKind.CORRUPT
    assert measured(bert).kind is FailureKind.CORRUPT


@pytest.mark.parametrize(
    "name", ["a" * 5000, "a/" * 3000, "~no-such-user/x", "a\0b", "\udcff", "::error::x", "\r\n"]
)
def test_names_that_no_file_has(name: str) -> None:
    result = run("inspect", f"./{name}" if name.strip() == "" else name, "-f", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["kind"] == "not_found"


def test_names_that_steer_a_terminal(tmp_path: Path) -> None:
    place = tmp_path / "a\n\x1b[31m\u202e\r::error::x"
    place.mkdir()
    (place / "config.json").write_text(json.dumps({**BERT, "model_type": "x\x1b[2J\n::error::y"}))
    for target in (place, place / "missing"):
        result = run("inspect", target)
        assert result.exit_code == 3
        assert not {"\x1b", "\r", "\u202e"} & set(result.output)
        assert all(line.startswith(("error: ", "hint: ")) for line in result.output.splitlines())


# What is written.


def inspected(path: Path, *more: object) -> Result:
    return run("inspect", "demo:pre-norm", "-f", "json", "-q", "-o", path, *more)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    for number, leads_to in enumerate((kept, tmp_path / "gone", Path("/dev/full"))):
        link = tmp_path / str(number)
        link.symlink_to(leads_to)
        for option in ("-o", "--save", "--plot"):
            place = link if option == "-o" else link.with_suffix(".csv")
            if option == "--plot":
                place = link.with_suffix(".png")
            if place != link:
                place.symlink_to(leads_to)
            command = "inspect" if option == "-o" else "stats"
            more = () if option == "-o" else ("--input", "the norm")
            result = run(command, "demo:pre-norm", *more, option, place)
            assert (result.exit_code, "is a symbolic link" in result.stderr) == (2, True)
    assert kept.read_text() == "kept"
    assert not (tmp_path / "gone").exists()


def test_a_link_that_comes_late_is_replaced(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_text("kept")
    link.symlink_to(kept)
    replace_file(link, b"new")
    assert (kept.read_text(), link.read_text(), link.is_symlink()) == ("kept", "new", False)


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "no" / "such"):
        assert inspected(place).exit_code == 2
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path, b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "answer.json"
    place.write_text("before")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    result = inspected(place)
    assert (result.exit_code, "No space left on device" in result.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]
    assert place.read_text() == "before"


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    place = tmp_path / ("a" * 255)
    assert inspected(place).exit_code == 0
    assert json.loads(place.read_text())["target"] == "demo:pre-norm"
    longer = inspected(tmp_path / ("a" * 256))
    assert (longer.exit_code, "File name too long" in longer.stderr) == (2, True)


def test_no_file_is_written_twice_or_over_what_is_read(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(BERT))
    over = run("inspect", config, "-o", config)
    assert (over.exit_code, "written over a file that is read" in over.stderr) == (2, True)
    (tmp_path / "texts.csv").write_text("the norm\n")
    here = tmp_path / "sub" / ".." / "texts.csv"
    (tmp_path / "sub").mkdir()
    for arguments in (
        ("--input-file", tmp_path / "texts.csv", "--save", here),
        ("--input", "x", "--save", here, "-o", tmp_path / "texts.csv"),
    ):
        result = run("stats", *arguments)
        assert (result.exit_code, "would be written over" in result.stderr) == (2, True)
    assert (tmp_path / "texts.csv").read_text() == "the norm\n"


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdout_by_its_names(name: str) -> None:
    assert json.loads(inspected(Path(name)).stdout)["target"] == "demo:pre-norm"


def test_the_systems_own_links_lead_to_pipes(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    kept = tmp_path / "kept"
    with kept.open("w") as file:
        writer.check_destination(Path(f"/dev/fd/{writing}"))
        with pytest.raises(writer.UsageError, match="symbolic link"):
            writer.check_destination(Path(f"/dev/fd/{file.fileno()}"))
    os.close(reading)
    os.close(writing)
