"""Targets of one's own code that hang, grow, crash or talk, and what is left of their processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specimens.source import BLOCK

_MODULE = "made_factories"
_FACTORIES = f"""{BLOCK}
import os, signal, sys, time

def model():
    return nn.Sequential(Block(), Block()), (torch.zeros(1, 3, 8),)

def waits():
    print("waiting", os.getpid(), file=sys.stderr, flush=True)
    time.sleep(120)

def grows():
    held = []
    while len(held) < 40:
        held.append(b"x" * 50_000_000)
        time.sleep(0.02)
    return model()

def loud():
    os.write(1, b"native words")
    print("words")
    return model()

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def crashed():
    os.kill(os.getpid(), signal.SIGSEGV)

def gone():
    os._exit(7)

def broken():
    raise ZeroDivisionError("by zero")
"""
GOOD, WAITS, GROWS, LOUD, KILLED, CRASHED, GONE, BROKEN = (
    f"py:{_MODULE}:{name}"
    for name in ("model", "waits", "grows", "loud", "killed", "crashed", "gone", "broken")
)
"""`GOOD` is answered; `WAITS` says `waiting PID` on stderr and sleeps for two minutes."""


def make_factories(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the code of the targets; this process and those that it starts find it.

    They also find the normscope that is tested, wherever it lies.
    """
    (folder / f"{_MODULE}.py").write_text(_FACTORIES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def normscope_command(*arguments: str) -> list[str]:
    """Return the command that runs the normscope of this test, in a process of its own."""
    return [sys.executable, "-P", "-m", "normscope", *arguments]


def waiting_worker(process: subprocess.Popen[str]) -> int:
    """Wait until a worker of the process is at work on `WAITS`, and return its number."""
    assert process.stderr is not None
    return int(process.stderr.readline().split()[1])


def is_gone(process: int, patience: float = 10.0) -> bool:
    """Tell whether a process that nobody here waits for is gone, or soon is."""
    until = time.monotonic() + patience
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
