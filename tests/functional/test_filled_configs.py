"""Model types whose default config does not build, from configs with the fields of a checkpoint.

`corpus/filled.json` holds small configs with the fields that real checkpoints of these types have,
and the placements that were read from each forward().
"""

import json
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.errors import FailureKind
from normscope.inspection import Inspection, Uninspectable

FILLED = json.loads(
    (Path(__file__).parent.parent / "corpus" / "filled.json").read_text(encoding="utf-8")
)
BUILT_BY_DEFAULT = {"voxtral_realtime_text", "musicgen", "musicgen_melody"}
"""AutoModel fails on them, and their class builds: one that transformers does not export, and
decoders that take their own part of the config."""


@pytest.mark.parametrize("model_type", FILLED)
def test_a_config_with_the_missing_fields_is_answered(model_type, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FILLED[model_type]["config"]), encoding="utf-8")
    report = inspect_checkpoint(str(path))
    assert isinstance(report, Inspection), report
    assert report.model.class_name in {*FILLED[model_type]["config"].get("architectures", ())} or (
        "architectures" not in FILLED[model_type]["config"]
    )
    found: dict[str, set[tuple[str, ...]]] = {}
    for block in report.blocks:
        if block.stack is not None:
            names = tuple(branch.placement.value for branch in block.branches)
            found.setdefault(block.stack, set()).add(names)
    for stack, names in FILLED[model_type]["stacks"].items():
        assert found[stack] == {tuple(names)}


@pytest.mark.parametrize("model_type", sorted(set(FILLED) - BUILT_BY_DEFAULT))
def test_the_default_config_fails_for_a_reason_that_is_named(model_type):
    answer = inspect_checkpoint(f"type:{model_type}")
    assert isinstance(answer, Uninspectable)
    assert answer.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "does not build: " in answer.message
    assert "config.json" in answer.hint
