"""`normscope rule` as people and pipelines call it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normscope.cli.app import app

WITHOUT_TORCH = """
import sys
from typer.testing import CliRunner
from normscope.cli.app import app
found = CliRunner().invoke(app, sys.argv[1:])
print(found.exit_code, "torch" in sys.modules, "transformers" in sys.modules)
"""


def run(*words: str):
    return CliRunner().invoke(app, ["rule", *words])


def test_without_a_code_every_rule_has_a_line() -> None:
    found = run()
    assert found.exit_code == 0
    assert [line.split()[0] for line in found.stdout.splitlines()][:3] == ["code", "NS101", "NS102"]
    assert found.stderr == ""


def test_a_code_in_any_case_is_explained() -> None:
    found = run("ns303")
    assert found.exit_code == 0
    for heading in ("What it checks", "Why it matters", "How to fix it", "What it needs"):
        assert heading in found.stdout


@pytest.mark.parametrize("words", [("NS110",), ("XY1", "-f", "json")])
def test_a_code_that_there_is_not_is_a_usage_error(words: tuple[str, ...]) -> None:
    found = run(*words)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "there is no rule" in found.stderr
    assert "`normscope rule` lists" in found.stderr


@pytest.mark.parametrize("written", ["json", "jsonl", "markdown", "table"])
def test_every_format_can_be_put_into_a_file(tmp_path: Path, written: str) -> None:
    path = tmp_path / "rules.txt"
    assert run("-f", written, "-o", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8") == run("-f", written).stdout
    assert run("NS102", "-f", written).exit_code == 0


def test_json_is_one_document() -> None:
    assert json.loads(run("NS204", "-f", "json").stdout)["needs"] == "values"
    assert len(json.loads(run("-f", "json").stdout)["rules"]) == 25


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("rule",), "0 False False"),
        (("rule", "NS405"), "0 False False"),
        (("rule", "NS1"), "2 False False"),
    ],
)
def test_torch_is_never_imported(words: tuple[str, ...], answer: str) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer
