"""`normscope inspect --jobs N`: the same answers, from processes that may die."""

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

TINY = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}

FACTORIES = """
import os, signal, sys, time
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

def waits():
    print("waiting", os.getpid(), file=sys.stderr, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def configs(tmp_path: Path) -> list[str]:
    """Configs of one to four layers."""
    paths = [tmp_path / f"{layers}.json" for layers in (1, 2, 3, 4)]
    for layers, path in enumerate(paths, start=1):
        path.write_text(json.dumps({**TINY, "num_hidden_layers": layers}))
    return [str(path) for path in paths]


@pytest.fixture
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_factories.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *arguments])


def documents(result: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_answers_are_those_of_one_process(configs: list[str]) -> None:
    alone = run(*configs, "-f", "json", "--no-cache")
    side_by_side = run(*configs, "-f", "json", "--no-cache", "--jobs", "2")
    assert (alone.exit_code, side_by_side.exit_code) == (0, 0)
    assert side_by_side.stdout == alone.stdout
    assert run(*configs, "--no-cache", "-j", "2").stdout == run(*configs, "--no-cache").stdout


@pytest.mark.usefixtures("_factories")
def test_jsonl_comes_as_it_is_known_and_tables_in_order(configs: list[str]) -> None:
    run(configs[3])  # kept: the parent knows it while the workers start
    targets = ["py:made_factories:model", configs[0], configs[3]]
    lines = documents(run(*targets, "-f", "jsonl", "-j", "2"))
    assert lines[0]["target"] == configs[3]
    assert sorted(str(line["target"]) for line in lines) == sorted(targets)
    lines = documents(run(*targets, "-f", "json", "-j", "2", "--no-cache"))
    assert [line["target"] for line in lines] == targets


@pytest.mark.usefixtures("_factories")
@pytest.mark.parametrize(
    ("factory", "kind", "said"),
    [
        ("killed", "out_of_memory", "killed"),
        ("crashed", "internal", "SIGSEGV"),
        ("gone", "internal", "status 7"),
        ("broken", "unknown_architecture", "by zero"),
    ],
)
def test_a_worker_that_dies_costs_one_answer(factory: str, kind: str, said: str) -> None:
    bad, good = f"py:made_factories:{factory}", "py:made_factories:model"
    result = run(good, bad, good, bad, good, "-f", "json", "-j", "2")
    found = documents(result)
    assert [document["target"] for document in found] == [good, bad, good, bad, good]
    assert [document.get("kind") for document in found] == [None, kind, None, kind, None]
    assert said in str(found[1]["message"])
    assert result.exit_code == 3


@pytest.mark.usefixtures("_factories")
def test_what_workers_print_is_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    target = "py:made_factories:loud"
    command = [sys.executable, "-m", "normscope", "inspect", target, target, "-j", "2"]
    subprocess.run([*command, "-f", "jsonl"], check=True)
    out, err = capfd.readouterr()
    assert [json.loads(line)["target"] for line in out.splitlines()] == [target, target]
    assert "native words" in err


def test_what_is_kept_needs_no_worker(configs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(*configs, "-f", "json")
    monkeypatch.setattr(
        "normscope.cli.workers.Workers.give", lambda *_: pytest.fail("a worker was asked")
    )
    assert run(*configs, "-f", "json", "-j", "2").stdout == first.stdout


def test_a_target_that_means_nothing_is_a_usage_error(configs: list[str]) -> None:
    result = run(configs[0], "py:nothing", configs[1], "-j", "2")
    assert result.exit_code == 2
    assert "py:nothing" in result.stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_jobs_is_a_count(jobs: str) -> None:
    assert run("type:bert", "--jobs", jobs).exit_code == 2


def test_a_worker_ends_after_its_share(configs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    workers = "normscope.cli.workers.Workers"

    def counted(self: object) -> object:
        started.append(self)
        return real(self)

    from normscope.cli.workers import Workers

    real = Workers._started
    monkeypatch.setattr(f"{workers}._started", counted)
    many = configs * 15
    assert len(documents(run(*many, "-f", "json", "-j", "2", "--no-cache"))) == len(many)
    assert 3 <= len(started) <= 4


@pytest.mark.usefixtures("_factories")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all(configs: list[str], number: signal.Signals) -> None:
    waits = "py:made_factories:waits"
    process = subprocess.Popen(
        [sys.executable, "-m", "normscope", "inspect", waits, waits, configs[0], "-j", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    workers = [int(process.stderr.readline().split()[1]) for _ in range(2)]
    everyone = processes_of(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert set(workers) < everyone
    assert all(ended(one) for one in everyone - {process.pid})


def processes_of(session: int) -> set[int]:
    """Return every process of a session: workers, what forks them, and what looks after them."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,sid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = (line.split() for line in listed.splitlines())
    return {int(process) for process, leader in pairs if int(leader) == session}


def ended(process: int) -> bool:
    """Tell whether a process that nobody here waits for is gone, or soon is."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
