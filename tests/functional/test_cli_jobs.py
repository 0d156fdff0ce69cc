"""`normscope inspect --jobs N`: the same answers, from processes that may die."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from specimens.misbehaving import (
    BROKEN,
    CRASHED,
    GONE,
    GOOD,
    KILLED,
    LOUD,
    WAITS,
    is_gone,
    make_factories,
    normscope_command,
    waiting_worker,
)
from specimens.tiny import write_config


@pytest.fixture
def configs(tmp_path: Path) -> list[str]:
    """Configs of one to four layers."""
    folders = [write_config(tmp_path / f"{n}", num_hidden_layers=n) for n in (1, 2, 3, 4)]
    return [str(folder / "config.json") for folder in folders]


@pytest.fixture
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_factories(tmp_path, monkeypatch)


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
    targets = [GOOD, configs[0], configs[3]]
    lines = documents(run(*targets, "-f", "jsonl", "-j", "2"))
    assert lines[0]["target"] == configs[3]
    assert sorted(str(line["target"]) for line in lines) == sorted(targets)
    lines = documents(run(*targets, "-f", "json", "-j", "2", "--no-cache"))
    assert [line["target"] for line in lines] == targets


@pytest.mark.usefixtures("_factories")
@pytest.mark.parametrize(
    ("bad", "kind", "said"),
    [
        (KILLED, "out_of_memory", "killed"),
        (CRASHED, "internal", "SIGSEGV"),
        (GONE, "internal", "status 7"),
        (BROKEN, "unknown_architecture", "by zero"),
    ],
)
def test_a_worker_that_dies_costs_one_answer(bad: str, kind: str, said: str) -> None:
    result = run(GOOD, bad, GOOD, bad, GOOD, "-f", "json", "-j", "2")
    found = documents(result)
    assert [document["target"] for document in found] == [GOOD, bad, GOOD, bad, GOOD]
    assert [document.get("kind") for document in found] == [None, kind, None, kind, None]
    assert said in str(found[1]["message"])
    assert result.exit_code == 3


@pytest.mark.usefixtures("_factories")
def test_what_workers_print_is_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    command = normscope_command("inspect", LOUD, LOUD, "-j", "2", "-f", "jsonl")
    subprocess.run(command, check=True)
    out, err = capfd.readouterr()
    assert [json.loads(line)["target"] for line in out.splitlines()] == [LOUD, LOUD]
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
    process = subprocess.Popen(
        normscope_command("inspect", WAITS, WAITS, configs[0], "-j", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers = [waiting_worker(process) for _ in range(2)]
    everyone = processes_of(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert set(workers) < everyone
    assert all(is_gone(one) for one in everyone - {process.pid})


def processes_of(session: int) -> set[int]:
    """Return every process of a session: workers, what forks them, and what looks after them."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,sid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = (line.split() for line in listed.splitlines())
    return {int(process) for process, leader in pairs if int(leader) == session}
