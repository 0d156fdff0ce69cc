"""`normscope inspect --verify`: what the numbers say, in every format, process and answer kept."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from golden.verified import agreeing, contradicted, without_copy
from normscope.cli.app import app
from normscope.inspection import Inspection
from normscope.render.documents import render_json
from normscope.render.page import PLAIN
from normscope.render.table import render_table
from normscope.render.verification import render_verification
from specimens.source import BLOCK
from specimens.tiny import TINY

FACTORIES = (
    BLOCK
    + """
class Held(Block):
    def __deepcopy__(self, memo):
        raise ValueError("there is only one of it")

KEPT = nn.Sequential(Block(), Block())
BEFORE = {name: value.clone() for name, value in KEPT.state_dict().items()}

def live():
    return KEPT, (torch.linspace(-1, 1, 24).reshape(1, 3, 8),)

def touched():
    for name, value in KEPT.state_dict().items():
        assert torch.equal(value, BEFORE[name]), name
    return live()

def held():
    return nn.Sequential(Held(), Held()), (torch.linspace(-1, 1, 24).reshape(1, 3, 8),)
"""
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *arguments])


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY))
    return str(path)


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with factories."""
    (tmp_path / "made_to_verify.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_to_verify", raising=False)
    return "py:made_to_verify"


def made(monkeypatch: pytest.MonkeyPatch, *answers: Inspection) -> list[str]:
    """Let each answer be that of its own target, and return the targets."""
    known = {f"made:{n}": replace(one, target=f"made:{n}") for n, one in enumerate(answers)}
    monkeypatch.setattr("normscope.cli.inspect_request.ask", lambda target, _: known[target])
    return list(known)


class TestOneTarget:
    def test_the_section_follows_the_table(self, config: str) -> None:
        plain, verified = run(config), run(config, "--verify")
        assert (verified.exit_code, verified.stderr) == (0, "")
        assert verified.stdout.startswith(plain.stdout)
        section = verified.stdout.removeprefix(plain.stdout)
        assert "verified in a copy with random weights: widths over " in section
        assert "    4 branches: all agree\n    5 norms: all agree\n" in section

    def test_json_has_the_key_only_where_it_was_asked_for(self, config: str) -> None:
        plain = json.loads(run(config, "-f", "json").stdout)
        verified = json.loads(run(config, "--verify", "-f", "json").stdout)
        found = verified.pop("verification")
        assert verified == plain
        assert found["agrees"] is True
        assert {item["observed"] for item in found["branches"]} == {"pre-norm"}
        assert [item["name"] for item in found["norms"]] == [n["name"] for n in plain["norms"]]
        assert {check["fact"] for item in found["norms"] for check in item["checks"]} >= {
            "kind", "gain", "bias", "eps",
        }  # fmt: skip
        assert found["branches_not_checked"] == found["norms_not_checked"] == []

    def test_markdown_has_the_counts(self, config: str) -> None:
        text = run(config, "--verify", "-f", "markdown").stdout
        assert "\n- 4 branches: all agree\n- 5 norms: all agree\n" in text

    def test_it_follows_every_view(self, config: str) -> None:
        text = run(config, "--verify", "--norms").stdout
        assert text.startswith("5 norm calls")
        assert "5 norms: all agree" in text

    @pytest.mark.parametrize("target", ["type:bert", "demo:post-norm"])
    def test_other_targets(self, target: str) -> None:
        result = run(target, "--verify")
        assert (result.exit_code, result.stderr) == (0, "")
        assert "disagree" not in result.stdout
        assert "not checked" not in result.stdout


class TestDisagreement:
    def test_it_is_a_warning_and_no_finding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (target,) = made(monkeypatch, contradicted())
        result = run(target, "--verify")
        assert result.exit_code == 0
        assert result.stderr == (
            "warning: made:0: 2 branches and 2 norms disagree with their numbers; "
            "please report it\n"
        )
        shown = replace(contradicted(), target="made:0")
        assert result.stdout == "\n".join(
            (render_table(shown, PLAIN), render_verification(shown, PLAIN))
        )

    def test_quiet_leaves_it_to_the_results(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (target,) = made(monkeypatch, contradicted())
        result = run(target, "--verify", "--quiet")
        assert (result.exit_code, result.stderr) == (0, "")
        assert "2 disagree" in result.stdout

    def test_json_says_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (target,) = made(monkeypatch, contradicted())
        result = run(target, "--verify", "-f", "json")
        assert result.stdout == render_json(replace(contradicted(), target="made:0"))
        assert json.loads(result.stdout)["verification"]["agrees"] is False


class TestSeveralTargets:
    def test_the_comparison_counts_and_shows_what_disagrees(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        result = run(*made(monkeypatch, agreeing(), contradicted(), without_copy()), "--verify")
        table, section = result.stdout.split("\n\n", 1)
        assert [line.split("  ")[-1].strip() for line in table.splitlines()] == [
            "verified", "9 of 9", "39 of 49, 4 disagree", "5 of 9",
        ]  # fmt: skip
        assert section.startswith("made:1\n  verified in a copy")
        assert "made:0" not in section

    def test_verbose_shows_all_of_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        targets = made(monkeypatch, agreeing(), without_copy())
        text = run(*targets, "--verify", "--verbose").stdout
        assert text.count("\n  verified ") == 2

    def test_reports_cross_processes(self, config: str, factories: str, tmp_path: Path) -> None:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "normscope", "inspect", config, f"{factories}:live",
             "--jobs", "2", "--verify", "-f", "json", "--no-cache"],
            capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path))},
        )  # fmt: skip
        documents = [json.loads(line) for line in ended.stdout.splitlines()]
        assert [one["verification"]["agrees"] for one in documents] == [True, True]
        assert [len(one["verification"]["branches"]) for one in documents] == [4, 2]


class TestKeptAnswers:
    def test_the_second_answer_is_the_kept_one(
        self, config: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = run(config, "--verify", "-f", "json")
        monkeypatch.setattr("normscope.pipeline._inspected", lambda *_: pytest.fail("was run"))
        assert run(config, "--verify", "-f", "json").stdout == first.stdout

    def test_an_answer_without_it_is_another(self, config: str) -> None:
        run(config)
        assert "verification" in json.loads(run(config, "--verify", "-f", "json").stdout)
        assert "verification" not in json.loads(run(config, "-f", "json").stdout)


class TestLiveModules:
    def test_weights_stay_as_they_are(self, factories: str) -> None:
        text = run(f"{factories}:live", "--verify").stdout
        assert "verified in a copy with random weights: the whole model" in text
        assert "2 branches: all agree" in text
        assert run(f"{factories}:touched", "--verify").exit_code == 0

    def test_what_cannot_be_copied_is_said(self, factories: str) -> None:
        result = run(f"{factories}:held", "--verify")
        assert result.exit_code == 0
        assert "Sequential cannot be copied: there is only one of it" in result.stdout
        assert "2 branches, not checked" in result.stdout
        assert "2 norms: all agree" in result.stdout
