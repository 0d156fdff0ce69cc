"""README says what the program does: its outputs are the program's, its options exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from normscope.cli.app import app
from normscope.inspection import Placement

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```console\n\$ normscope (inspect [^\n]*)\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_an_output_in_readme_is_the_programs(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0
    assert without_lines(result.stdout) == without_lines(output)


def without_lines(text: str) -> str:
    """Leave out the line numbers of transformers' files, which move with every release."""
    return re.sub(r"\.py:\d+", ".py", text)


def test_readme_shows_outputs() -> None:
    assert len(SHOWN) >= 4


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", README))))
def test_an_option_in_readme_exists(option: str) -> None:
    commands = [["--help"], *([c.name, "--help"] for c in app.registered_commands if c.name)]
    helps = [CliRunner().invoke(app, command).stdout for command in commands]
    assert any(re.search(rf"{option}\b", text) for text in helps)


@pytest.mark.parametrize("placement", Placement)
def test_every_placement_is_explained(placement: Placement) -> None:
    assert f"| `{placement.value}` |" in README
