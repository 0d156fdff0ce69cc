"""`--timeout` and `--memory-limit`: a target that hangs or eats memory is ended, and told."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from normscope.cli.process_limits import ProcessLimits, held_memory, read_limits
from normscope.cli.workers import Workers
from normscope.errors import UsageError
from specimens.misbehaving import (
    GOOD,
    GROWS,
    WAITS,
    is_gone,
    make_factories,
    normscope_command,
    waiting_worker,
)


@pytest.fixture(autouse=True)
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_factories(tmp_path, monkeypatch)


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
        normscope_command("inspect", WAITS, "--timeout", "50"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    worker = waiting_worker(process)
    assert not is_gone(worker, patience=0)
    process.kill()
    process.communicate(timeout=60)
    assert is_gone(worker)


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
