"""`normscope audit` as a process: interrupts, closed pipes, dying workers, no torch early."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specimens.misbehaving import (
    GONE,
    GOOD,
    GROWS,
    KILLED,
    LOUD,
    WAITS,
    is_gone,
    make_factories,
    normscope_command,
    waiting_worker,
)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("factories", "here", "temporary"):
        (tmp_path / name).mkdir()
    make_factories(tmp_path / "factories", monkeypatch)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))


def command(*arguments: str) -> list[str]:
    return normscope_command("audit", *arguments)


def begun(*arguments: str) -> "tuple[subprocess.Popen[str], int]":
    """Start an audit and wait until a target is being worked on; return it and the worker."""
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return process, waiting_worker(process)


def documents(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_finished(number: signal.Signals, tmp_path: Path) -> None:
    files = ["-f", "jsonl", "-f", "json:r.json", "-f", "sarif:r.sarif", "--no-cache"]
    records = ["--lock", "l.lock", "--update-lock"]
    process, worker = begun(GOOD, WAITS, LOUD, *files, *records)
    assert process.stdout is not None
    first = process.stdout.readline()  # lines come as targets are known
    process.send_signal(number)
    rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted after 1 of 3 targets"
    lines = documents(first + rest)
    assert [line.get("target") for line in lines] == [GOOD, None]
    assert lines[-1]["interrupted"] is True
    whole = json.loads(Path("r.json").read_text())
    assert (len(whole["targets"]), whole["interrupted"]) == (1, True)
    assert json.loads(Path("r.sarif").read_text())["version"] == "2.1.0"
    assert is_gone(worker)
    assert sorted(path.name for path in Path().iterdir()) == ["r.json", "r.sarif"]
    assert list((tmp_path / "temporary").glob("normscope-*")) == []


def test_what_goes_wrong_costs_one_answer() -> None:
    targets = [GOOD, KILLED, WAITS, GROWS, GONE, LOUD]
    limits = ["--timeout", "4", "--memory-limit", "1GB"]
    ended = subprocess.run(
        command(*targets, "-f", "jsonl", "--jobs", "2", *limits),
        capture_output=True,
        text=True,
        check=False,
    )
    kinds = {line.get("target"): line.get("kind") for line in documents(ended.stdout)[:-1]}
    assert kinds == {
        GOOD: None,
        KILLED: "out_of_memory",
        WAITS: "too_large",
        GROWS: "too_large",
        GONE: "internal",
        LOUD: None,
    }
    assert ended.returncode == 3


def test_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            command("./none", "./neither", "-f", "jsonl", "--quiet"),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


MISTAKES = [
    [],
    ["--policy", "none.toml"],
    ["type:bert", "-f", "yaml"],
    ["type:bert", "-f", "sarif:no/such.sarif"],
    ["type:bert", "-f", "table", "-f", "json"],
    ["type:bert", "-o", "."],
    ["type:bert", "--lock", "none.lock"],
    ["type:bert", "--baseline", "none.json"],
    ["type:bert", "--update-lock"],
    ["type:bert", "--shard", "0/2"],
    ["type:bert", "--shard", "half"],
    ["type:bert", "--select", "NS9"],
    ["type:bert", "--ignore", "nothing"],
    ["type:bert", "--memory-limit", "much"],
    ["type:bert", "--fail-on", "never"],
    ["--init"],
]
PROGRAM = """
import json, sys
from normscope.cli.app import main
for arguments in json.load(sys.stdin):
    sys.argv = ["normscope", "audit", *arguments]
    try:
        main()
    except SystemExit as end:
        heavy = {"torch", "transformers", "numpy", "huggingface_hub"} & set(sys.modules)
        print(json.dumps([end.code, sorted(heavy)]))
"""


def test_usage_errors_come_before_torch() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        input=json.dumps(MISTAKES),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [[2, []]] * len(MISTAKES)
    assert ended.stderr.lower().count("error") >= len(MISTAKES)
