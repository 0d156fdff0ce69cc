"""Ctrl-C and SIGTERM while the command still loads: 130 and one word, no traceback, no orphan."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SCRIPT = [str(Path(sysconfig.get_path("scripts")) / "normscope")]
MODULE = [sys.executable, "-P", "-m", "normscope"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]

# Python imports it before any program.
SITE = """
import os, sys, time
class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["SIGNAL_AT"]:
            os.killpg(0, int(os.environ["SIGNAL"]))
            time.sleep(int(os.environ["STAYING"]))
sys.meta_path.insert(0, Finder())
"""


def interrupted(
    folder: Path, command: list[str], number: signal.Signals, at: str, *, staying: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run a command; all its processes get a signal when one of them imports the module `at`.

    Ends when no process has its stderr any more; one that lives on does so for `staying` seconds.
    """
    (folder / "sitecustomize.py").write_text(SITE)
    changes = {
        "PYTHONPATH": str(folder),
        "SIGNAL_AT": at,
        "SIGNAL": str(int(number)),
        "STAYING": str(staying),
    }
    return subprocess.run(
        command,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("at", ["normscope.cli.app", "typer", "normscope.cli.rule"])
@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])
def test_while_the_command_loads(
    tmp_path: Path, command: list[str], at: str, number: signal.Signals
) -> None:
    ended = interrupted(tmp_path, [*command, "rule", "NS101"], number, at)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("typed", "at", "number"),
    [
        ("inspect type:bert", "torch", signal.SIGINT),
        ("diff type:bert type:bert", "torch._C", signal.SIGTERM),
        ("stats demo:pre-norm -i norm", "numpy._core.multiarray", signal.SIGINT),
    ],
)
def test_while_the_libraries_load(
    tmp_path: Path, typed: str, at: str, number: signal.Signals
) -> None:
    ended = interrupted(tmp_path, [*SCRIPT, *typed.split(), "--no-cache"], number, at)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_workers_load(tmp_path: Path, number: signal.Signals) -> None:
    typed = ["inspect", "type:bert", "type:gpt2", "type:t5", "--no-cache", "--jobs", "2"]
    ended = interrupted(tmp_path, [*SCRIPT, *typed], number, "torch", staying=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_without_a_signal_it_answers(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, [*SCRIPT, "rule", "NS101"], signal.SIGINT, "no such module")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "NS101" in ended.stdout


def test_what_the_shell_has_ignored_stays_so(tmp_path: Path) -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignoring, *SCRIPT, "rule", "NS101"]
    ended = interrupted(tmp_path, command, signal.SIGINT, "typer")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_interrupt_that_an_import_took_for_its_own_error_is_no_bug() -> None:
    program = """
import os, signal
import normscope.cli.rule as command
from normscope.cli.app import main
def importing(*_):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("of a library")
command._text_of = importing
main()
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program, "rule"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")
