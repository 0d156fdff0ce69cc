"""`--timeout` and `--memory-limit`: a target that hangs or eats memory is ended, and told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from normscope.cli.process_limits import ProcessLimits, held_memory, read_limits
from normscope.cli.workers import Workers
from normscope.errors import UsageError

FACTORIES = """
import os, sys, time
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)
    def forward(self, x):
        return x + self.linear(self.norm(x))

def model():
    return nn.Sequential(Block(), Block()), (torch.zeros(1, 3, 8),)

def waits():
    print("waiting", os.getpid(), file=sys.stderr, flush=True)
    time.sleep(60)

def grows():
    held = []
    while len(held) < 40:
        held.append(b"x" * 50_000_000)
        time.sleep(0.02)
    return model()
"""
GOOD, WAITS, GROWS = (f"py:limited_factories:{name}" for name in ("model", "waits", "grows"))


@pytest.fixture(autouse=True)
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "limited_factories.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), *sys.path)))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *arguments, "-f", "json", "-q"])


@pytest.mark.parametrize(
    ("bad", "option", "limit", "kind"),
    [
        (WAITS, "--timeout", "1.5", "too_large"),
        (GROWS, "--memory-limit", "900MB", "too_large"),
    ],
)
def test_one_that_goes_too_far_is_ended(bad: str, option: str, limit: str, kind: str) -> None:
    result = run(GOOD, bad, GOOD, option, limit)
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [document["target"] for document in documents] == [GOOD, bad, GOOD]
    assert [document.get("kind") for document in documents] == [None, kind, None]
    assert f"{option} {limit}" in documents[1]["message"]
    assert option in documents[1]["hint"]
    assert result.exit_code == 3


def test_what_stays_within_is_answered_as_ever() -> None:
    assert run(GOOD, "--timeout", "60", "--memory-limit", "8GB").stdout == run(GOOD).stdout


def test_an_ended_process_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []

    def remembered(self: Workers[str, object]) -> object:
        worker = started(self)
        ended.append(worker.process.pid)
        return worker

    started = Workers._started
    monkeypatch.setattr(Workers, "_started", remembered)
    run(WAITS, "--timeout", "0.5")
    assert ended
    assert all(is_gone(process) for process in ended)


def test_workers_end_with_a_parent_that_is_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "normscope", "inspect", WAITS, "--timeout", "50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    worker = int(process.stderr.readline().split()[1])
    assert not is_gone(worker, patience=0)
    process.kill()
    process.communicate(timeout=60)
    assert is_gone(worker)


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


@pytest.mark.parametrize(
    ("typed", "size"), [("2GB", 2_000_000_000), ("512 MiB", 512 * 1024**2), ("1.5kb", 1500)]
)
def test_sizes(typed: str, size: int) -> None:
    assert read_limits(None, typed) == ProcessLimits(memory=size, typed_memory=typed)


@pytest.mark.parametrize("typed", ["much", "", "-1GB", "2XB", "GB"])
def test_what_is_no_size(typed: str) -> None:
    with pytest.raises(UsageError, match="--memory-limit"):
        read_limits(None, typed)


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_a_timeout_is_a_time(seconds: str) -> None:
    assert run(GOOD, "--timeout", seconds).exit_code == 2


def test_memory_is_what_a_process_holds() -> None:
    before = held_memory(os.getpid())
    held = b"x" * 100_000_000
    assert held_memory(os.getpid()) - before > 90_000_000
    del held


def test_a_process_that_is_gone_holds_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert held_memory(process.pid) == 0
