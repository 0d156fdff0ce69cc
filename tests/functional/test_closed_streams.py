"""Standard streams that are closed, before a command begins or while it answers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


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


def test_an_interrupt_before_any_command_is_no_traceback() -> None:
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
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


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
