"""Audits from Python: `audit_families`, and a test of somebody's own that inspects its targets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import normscope
from normscope.audit.findings import Severity
from normscope.audit.policy_file import read_policy
from normscope.errors import FailureKind, UsageError
from normscope.pipeline import InspectOptions
from normscope.weights.report import WeightsLevel
from specimens.tiny import tiny_policy, write_config


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy of two equal configs and one that is broken."""
    for name in ("a", "b", "broken"):
        write_config(tmp_path / "checkpoints" / name)
    (tmp_path / "checkpoints" / "broken" / "config.json").write_text("{")
    path = tmp_path / "normscope.toml"
    path.write_text(tiny_policy())
    return path


def test_every_target_has_its_answer(policy: Path) -> None:
    report = normscope.audit_families(policy)
    assert [target.target for target in report.targets] == [
        "checkpoints/a",
        "checkpoints/b",
        "checkpoints/broken",
    ]
    (failed,) = report.failed
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.CORRUPT
    assert failed.failure.message.startswith("config.json is not valid JSON")
    assert report.findings(Severity.WARNING) == ()


def test_a_policy_that_was_read_and_some_of_its_targets(policy: Path) -> None:
    policy.write_text(tiny_policy("post-norm"))
    report = normscope.audit_families(read_policy(policy), [str(policy.parent / "checkpoints/a")])
    assert [target.family for target in report.targets] == ["llamas"]
    assert {finding.code for finding in report.findings(Severity.ERROR)} == {"NS106"}


def test_equal_configs_are_inspected_once(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from normscope import pipeline

    seen: list[object] = []
    inspected = pipeline._inspected

    def counted(checkpoint: object, options: object) -> object:
        seen.append(checkpoint)
        return inspected(checkpoint, options)

    monkeypatch.setattr(pipeline, "_inspected", counted)
    normscope.audit_families(policy)
    assert len(seen) == 1


def test_records(policy: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "known.json"
    baseline.write_text('{"schema": "normscope.baseline/1", "findings": []}')
    lock = tmp_path / "normscope.lock"
    lock.write_text('{"schema": "normscope.lock/1", "targets": {}}')
    report = normscope.audit_families(policy, lock=lock, baseline=str(baseline))
    assert {finding.code for finding in report.findings(Severity.ERROR)} == {"NS502"}
    assert report.baseline == baseline.as_posix()


@pytest.mark.parametrize("name", ["lock", "baseline"])
def test_a_record_that_is_not_there_is_a_usage_error(policy: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is no such"):
        normscope.audit_families(policy, **{name: "none.json"})  # type: ignore[arg-type]


def test_why_targets_were_not_measured_is_said_without_their_names(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy.write_text(f'[stats]\ninput = "a text"\n{tiny_policy()}select = ["NS401"]\n')
    for name in "ab":
        (policy.parent / "checkpoints" / name / "model.safetensors").touch()
    monkeypatch.setattr(
        "normscope.activations.policy_input.measure_on_policy_input",
        lambda target, *_, **__: f"{target}: there is no tokenizer",
    )
    report = normscope.audit_families(policy, options=InspectOptions(weights=WeightsLevel.NONE))
    assert [one.reason for target in report.targets for one in target.unchecked] == [
        "there is no tokenizer",
        "there is no tokenizer",
    ]


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(import normscope\nimport pytest\n.*?)```", README, re.DOTALL)


def test_the_recipe_for_pytest(tmp_path: Path) -> None:
    (recipe,) = RECIPES
    (tmp_path / "test_norms.py").write_text(recipe)
    text = '[[family]]\nname = "demos"\ntargets = ["demo:pre-norm"]\n'
    (tmp_path / "normscope.toml").write_text(f'{text}expect = {{ placement = "pre-norm" }}\n')
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_norms.py"]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        arguments, cwd=tmp_path, env=found, capture_output=True, text=True, check=False
    )
    assert re.search(r"^3 passed", ended.stdout, re.MULTILINE), ended.stdout
