"""Audits from Python: `audit_families`, and a test of somebody's own that inspects its targets."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import normscope
from normscope.audit.findings import Severity
from normscope.audit.policy_file import read_policy
from normscope.errors import FailureKind, UsageError

TINY = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
POLICY = """
[[family]]
name = "llamas"
targets = ["checkpoints/*"]
expect = { placement = "pre-norm", eps = 1e-6 }
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy of two equal configs and one that is broken."""
    for name, text in (("a", json.dumps(TINY)), ("b", json.dumps(TINY)), ("broken", "{")):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
        (tmp_path / "checkpoints" / name / "config.json").write_text(text)
    path = tmp_path / "normscope.toml"
    path.write_text(POLICY)
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
    policy.write_text(POLICY.replace("pre-norm", "post-norm"))
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


RECIPE = """\
import normscope
import pytest


@pytest.mark.parametrize("target", ["type:bert", "demo:pre-norm"])
def test_no_norm_is_in_doubt(target):
    inspection = normscope.inspect_checkpoint(target)
    assert isinstance(inspection, normscope.Inspection), inspection.message
    assert inspection.placement in {"pre-norm", "post-norm"}
    assert all(norm.calls for norm in inspection.norms)


def test_the_family_is_as_the_policy_says():
    report = normscope.audit_families("normscope.toml")
    assert not report.failed
    assert not report.findings(normscope.Severity.WARNING)
"""


def test_the_recipe_for_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_norms.py").write_text(RECIPE)
    text = '[[family]]\nname = "demos"\ntargets = ["demo:pre-norm"]\n'
    (tmp_path / "normscope.toml").write_text(f'{text}expect = {{ placement = "pre-norm" }}\n')
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_norms.py"]
    ended = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(r"^3 passed", ended.stdout, re.MULTILINE), ended.stdout
