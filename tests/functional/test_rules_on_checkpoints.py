"""NS204 and NS301 to NS305 on saved checkpoints that were damaged as real ones have been."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from normscope import InspectOptions, inspect_checkpoint
from normscope.audit.findings import Severity
from normscope.inspection import Inspection
from normscope.weights.report import WeightsLevel
from specimens.observed import found

Tensors = dict[str, torch.Tensor]
SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
CODES = ("NS204", "NS301", "NS302", "NS303", "NS304", "NS305")


def save(folder: Path, model_type: str, change: Callable[[Tensors], Tensors]) -> Inspection:
    """Save a model with gains as if trained, change its tensors, and inspect it."""
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[model_type](**SMALL)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for name, value in model.named_parameters():
        if "norm" in name.lower():
            torch.nn.init.normal_(value, mean=value.detach().mean().item(), std=0.05)
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})
    return inspected(folder)


def inspected(folder: Path) -> Inspection:
    made = inspect_checkpoint(str(folder), InspectOptions(weights=WeightsLevel.NORMS))
    assert isinstance(made, Inspection), made
    return made


def kept(tensors: Tensors) -> Tensors:
    return tensors


def without(part: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


def plus(number: float) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {
        name: value + number if "norm" in name else value for name, value in tensors.items()
    }


def told(made: Inspection) -> Mapping[str, list[tuple[str, Severity]]]:
    """Return place and severity of what each rule finds, without rules that find nothing."""
    seen = {code: [(one.where, one.severity) for one in found(code, made)] for code in CODES}
    return {code: items for code, items in seen.items() if items}


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma2"])
def test_a_sound_checkpoint_has_nothing_wrong(tmp_path: Path, model_type: str) -> None:
    seen = dict(told(save(tmp_path, model_type, kept)))
    seen.pop("NS204", None)
    assert seen == {}


def test_qk_norms_that_a_merge_lost(tmp_path: Path) -> None:
    made = save(tmp_path, "qwen3", without("q_norm"))
    assert told(made) == {"NS301": [("model.layers.*.self_attn.q_norm.weight", Severity.ERROR)]}


def test_qk_norms_that_the_config_forgot(tmp_path: Path) -> None:
    save(tmp_path, "qwen3", kept)
    transformers.Qwen2Config(**SMALL, architectures=["Qwen2ForCausalLM"]).save_pretrained(tmp_path)
    assert told(inspected(tmp_path))["NS302"] == [
        ("model.layers.*.self_attn.k_norm.weight", Severity.WARNING),
        ("model.layers.*.self_attn.q_norm.weight", Severity.WARNING),
    ]


def test_a_norm_of_another_width(tmp_path: Path) -> None:
    made = save(
        tmp_path,
        "llama",
        lambda tensors: tensors | {"model.norm.weight": torch.ones(8) + torch.rand(8)},
    )
    assert told(made)["NS302"] == [("model.norm.weight", Severity.ERROR)]


@pytest.mark.parametrize(
    ("model_type", "number", "is_found"),
    [
        ("gemma2", 1.0, True),  # the file holds 1 + w, and the code adds 1 again
        ("gemma2", 0.0, False),
        ("llama", 1.0, True),  # 1 was added to plain gains
        ("llama", -1.0, True),  # or taken away
        ("llama", 0.0, False),
    ],
)
def test_an_offset_that_was_applied_twice_or_never(
    tmp_path: Path, model_type: str, number: float, is_found: bool
) -> None:
    seen = told(save(tmp_path, model_type, plus(number)))
    assert seen.get("NS303", []) == [("", Severity.ERROR)] * is_found


def test_values_that_no_training_leaves(tmp_path: Path) -> None:
    def broken(tensors: Tensors) -> Tensors:
        tensors["model.norm.weight"][3] = float("nan")
        tensors["model.layers.1.input_layernorm.weight"].zero_()
        for n in (0, 2):
            tensors[f"model.layers.{n}.post_attention_layernorm.weight"][: n + 1] = 0.0
        return tensors

    assert told(save(tmp_path, "llama", broken))["NS304"] == [
        ("model.norm.weight", Severity.ERROR),
        ("model.layers.*.input_layernorm.weight", Severity.WARNING),
        ("model.layers.*.post_attention_layernorm.weight", Severity.NOTE),
    ]


def test_names_of_an_older_bert(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in load_file(path).items()
    }
    save_file(old, path, metadata={"format": "pt"})
    seen = told(inspected(tmp_path))
    assert {severity for _, severity in seen["NS305"]} == {Severity.NOTE}
    assert len(seen["NS305"]) == 6
    assert "NS301" not in seen


def test_small_w_that_a_port_would_lose(tmp_path: Path) -> None:
    def small(tensors: Tensors) -> Tensors:
        tensors["model.norm.weight"] = torch.full((16,), 1e-3)
        return tensors

    seen = told(save(tmp_path, "gemma2", small))
    assert ("model.norm", Severity.NOTE) in seen["NS204"]
