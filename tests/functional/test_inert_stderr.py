"""What libraries and the user's code say of a target is shown on stderr, and steers nothing."""

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normscope.cli.app import app
from normscope.cli.inert_stream import InertStream
from normscope.cli.libraries import kept_off_stdout
from specimens.source import BLOCK

EVIL = "\x1b[31mred\x1b]0;t\x07 \u202edetrevni ##[error]x"
SHOWN = r"\x1b[31mred\x1b]0;t\x07 \u202edetrevni #\x23[error]x"

FACTORY = f"""{BLOCK}
import sys, warnings
from transformers.utils import logging

EVIL = {EVIL!r} + "\\n::error::y"

def model():
    logging.get_logger("transformers.some").error("logged " + EVIL)
    warnings.warn("warned " + EVIL)
    print("printed", EVIL)
    sys.stderr.write("written " + EVIL + "\\n")
    sys.stderr.write("begun " + EVIL[:-3])
    return nn.Sequential(Block(), Block()), (torch.zeros(1, 3, 8),)
"""


def said(folder: Path, *typed: str) -> str:
    """Return what the command, as a process of its own, says on stderr."""
    (folder / "loud_factory.py").write_text(FACTORY)
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "normscope", *typed, "py:loud_factory:model", "--no-cache"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stderr


def steers(text: str) -> bool:
    lines = text.split("\n")
    return (
        not all(line.isprintable() for line in lines)
        or any(line.lstrip().startswith("::") for line in lines)
        or "##[" in text
    )


@pytest.mark.parametrize("command", ["inspect", "stats"])
def test_verbose_passes_on_what_others_say(tmp_path: Path, command: str) -> None:
    told = said(tmp_path, command, "--verbose")
    for word in ("logged", "warned", "printed", "written", "begun"):
        assert f"{word} {SHOWN}" in told, word
    assert not steers(told)


def test_what_is_printed_is_escaped_also_without_it(tmp_path: Path) -> None:
    told = said(tmp_path, "inspect")
    assert f"printed {SHOWN}" in told
    assert "warned" not in told
    assert not steers(told)


def test_quiet_lets_none_of_it_through(tmp_path: Path) -> None:
    assert said(tmp_path, "inspect", "--quiet") == ""


def test_a_failure_in_the_log_steers_nothing(tmp_path: Path) -> None:
    config = {"model_type": "llama", "layer_types": [f"{EVIL}\n::error::y"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    typed = ["inspect", str(tmp_path), "--verbose", "--no-cache"]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 3
    assert SHOWN in result.stderr
    assert not steers(result.stderr)


def test_a_handler_that_was_there_before_is_caught_and_given_back() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log = logging.getLogger("made.before")
    log.addHandler(handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        with kept_off_stdout(quiet=False, verbose=True):
            log.error("%s", EVIL)
        assert handler.stream is stream
    log.removeHandler(handler)
    assert stream.getvalue() == f"{SHOWN}\n"


def test_a_command_in_two_pieces_is_seen() -> None:
    stream = io.StringIO()
    inert = InertStream(stream)
    for piece in ("#", "#[err", "or]x\n", ":", ":error", "\n", "rest"):
        inert.write(piece)
    inert.flush()
    assert stream.getvalue() == "#\\x23[error]x\n\\x3a:error\nrest"


def test_a_stream_that_is_closed_is_no_error() -> None:
    stream = io.StringIO()
    inert = InertStream(stream)
    stream.close()
    print("a line", file=inert, flush=True)
