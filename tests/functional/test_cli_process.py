"""The command as a process: signals, pipes, terminals, and what a shell sees."""

import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from golden.cases import COLORED, TERMINAL
from golden.inspections import EVERY, bert
from normscope.render.diagram import render_diagram
from normscope.render.documents import render_json_line
from normscope.render.page import PLAIN, Page
from normscope.render.table import render_table

TESTS = Path(__file__).parents[1]

FAKE = """
import sys, time
sys.path.append({tests!r})
import normscope.cli.inspect_request as command
from golden.inspections import EVERY
from normscope.cli.app import main

def ask(target, request):
    if target == "wait":
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(60)
    return EVERY[target]

command.ask = ask
main()
"""


def command(*arguments: str) -> list[str]:
    """Return a normscope that answers with made inspections."""
    return [sys.executable, "-P", "-c", FAKE.format(tests=str(TESTS)), "inspect", *arguments]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}


def test_the_module_runs() -> None:
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "normscope", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    name, version = shown.stdout.split()
    assert name == "normscope"
    assert version[0].isdigit() or version == "unknown"


def test_no_arguments_show_the_help() -> None:
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "normscope"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 2
    assert "Usage: normscope" in shown.stdout + shown.stderr


def test_the_shell_completes_commands() -> None:
    asked = environment(
        _NORMSCOPE_COMPLETE="complete_bash", COMP_WORDS="normscope ins", COMP_CWORD="1"
    )
    completed = subprocess.run(
        [sys.executable, "-P", "-m", "normscope"],
        env=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.stdout.split() == ["inspect"]


def test_an_interrupt_ends_it_with_130() -> None:
    with subprocess.Popen(
        command("wait"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            command("bert", "llama", "-f", "jsonl"),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_full_disk_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command("bert"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr == "error: cannot write the results: No space left on device\n"


def test_results_are_written_as_soon_as_they_are_known() -> None:
    with subprocess.Popen(
        command("bert", "wait", "-f", "jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == render_json_line(bert())
        process.kill()


def test_an_encoding_without_the_characters_loses_nothing() -> None:
    ended = subprocess.run(
        command("wav2vec2-conformer"),
        env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert r"x + 0.5\xb7f(N(x))" in ended.stdout


def test_a_drawing_does_without_the_characters_that_an_encoding_lacks() -> None:
    ended = subprocess.run(
        command("gemma2", "--diagram"),
        env=environment(PYTHONIOENCODING="latin-1", PYTHONUTF8="0"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "`- RMSNorm - attention - RMSNorm --'" in ended.stdout
    assert ended.stdout == render_diagram(EVERY["gemma2"], Page(ascii_only=True))


def on_terminal(*arguments: str, columns: int = 80, **changes: str) -> str:
    """Return what the command writes to a terminal of so many columns."""
    outer, inner = pty.openpty()
    ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        command(*arguments), stdout=inner, stderr=inner, stdin=inner, env=environment(**changes)
    )
    os.close(inner)
    seen = b"".join(iter(lambda: _read(outer), b""))
    os.close(outer)
    assert process.wait(timeout=30) == 0
    return seen.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux reports the other side's end so
        return b""


def test_a_terminal_has_colour_and_columns() -> None:
    assert on_terminal("bert") == render_table(bert(), COLORED)
    assert on_terminal("bert", columns=50) == render_table(bert(), Page(width=50, color=True))


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colour_has_none(setting: dict[str, str]) -> None:
    assert on_terminal("bert", **setting) == render_table(bert(), TERMINAL)


def test_columns_set_by_hand_win() -> None:
    assert on_terminal("bert", COLUMNS="60", NO_COLOR="1") == render_table(bert(), Page(width=60))


@pytest.mark.parametrize("setting", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_has_neither(setting: dict[str, str]) -> None:
    piped = subprocess.run(
        command("bert"), capture_output=True, text=True, check=True, env=environment(**setting)
    )
    assert piped.stdout == render_table(bert(), PLAIN)
