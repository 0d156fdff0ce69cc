"""README says what the program does: its outputs are the program's, its options exist."""

import re
import shlex
from pathlib import Path

import pytest
import transformers
from typer.testing import CliRunner

from normscope.cli.app import app
from normscope.inspection import Placement

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(
    r"```console\n\$ normscope ((?:inspect|diff) [^\n]*)\n(.*?)```", README, flags=re.DOTALL
)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_an_output_in_readme_is_the_programs(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == command.startswith("diff")  # what it shows is a difference
    assert without_lines(result.stdout) == without_lines(output)


def without_lines(text: str) -> str:
    """Leave out the places in transformers' files, which move with every release.

    The class is left out before transformers 5, which had one for each implementation of attention.
    """
    if int(transformers.__version__.partition(".")[0]) < 5:
        text = re.sub(r" \w+\.forward$", " forward", text, flags=re.MULTILINE)
    return re.sub(r"\.py:\d+", ".py", text)


MEASURED = re.findall(r"```console\n\$ normscope (stats [^\n]*)\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "output"), MEASURED, ids=[command for command, _ in MEASURED])
def test_a_measurement_in_readme_is_the_programs(command: str, output: str) -> None:
    """But for the last digit, which hangs on the machine."""
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0
    shown, found = pieces(output), pieces(result.stdout)
    assert len(shown) == len(found)
    for ours, theirs in zip(shown, found, strict=True):
        assert ours == (pytest.approx(theirs, rel=0.02) if isinstance(theirs, float) else theirs)


def pieces(text: str) -> list[str | float]:
    """Return the words of a text, with its numbers as numbers."""
    words = (word.replace(",", "") if word[0].isdigit() else word for word in text.split())
    return [float(word) if re.fullmatch(r"\d[\d.]*(e-?\d+)?", word) else word for word in words]


def test_readme_shows_outputs() -> None:
    assert len(SHOWN) >= 4
    assert len(MEASURED) >= 2


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", README))))
def test_an_option_in_readme_exists(option: str) -> None:
    commands = [["--help"], *([c.name, "--help"] for c in app.registered_commands if c.name)]
    helps = [CliRunner().invoke(app, command).stdout for command in commands]
    assert any(re.search(rf"{option}\b", text) for text in helps)


@pytest.mark.parametrize("placement", Placement)
def test_every_placement_is_explained(placement: Placement) -> None:
    assert f"| `{placement.value}` |" in README
