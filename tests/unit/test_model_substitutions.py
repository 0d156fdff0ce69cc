"""What runs in place of what a config asks for is listed as an assumption."""

import json
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.inspection import Inspection

LLAMA = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 2}


def assumed(folder: Path, config: dict[str, object]) -> dict[str, str]:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    report = inspect_checkpoint(str(path))
    assert isinstance(report, Inspection), report
    return {one.question: one.answer for one in report.assumptions}


@pytest.mark.parametrize(
    "config",
    [
        LLAMA,
        {**LLAMA, "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"},
        {**LLAMA, "attn_implementation": "sdpa", "torch_dtype": "float16"},
    ],
)
def test_a_config_that_is_followed_leaves_nothing_to_say(
    config: dict[str, object], tmp_path: Path
) -> None:
    assert assumed(tmp_path, config) == {}


def test_experts_run_as_batched_products(tmp_path: Path) -> None:
    assert assumed(tmp_path, MIXTRAL) == {"experts implementation": "batched_mm"}


@pytest.mark.parametrize(
    ("field", "value", "question", "answer"),
    [
        ("architectures", ["OwnModel"], "class", "LlamaModel in place of OwnModel"),
        ("dtype", "float8_e4m3fn", "dtype", "float32 in place of float8_e4m3fn"),
        (
            "attn_implementation",
            "flash_attention_2",
            "attention implementation",
            "sdpa in place of flash_attention_2",
        ),
        (
            "auto_map",
            {"AutoModel": "modeling_own.OwnModel"},
            "code",
            "transformers' own in place of the checkpoint's (auto_map)",
        ),
    ],
)
def test_each_substitution_is_told(
    field: str, value: object, question: str, answer: str, tmp_path: Path
) -> None:
    assert assumed(tmp_path, {**LLAMA, field: value}) == {question: answer}
