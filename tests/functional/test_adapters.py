"""An adapter as target: its base model is inspected, and the norms that it trains are told."""

import json

import pytest
import torch
import transformers
from safetensors.torch import save_file
from typer.testing import CliRunner

from normscope.cli.app import app

TRAINED = "base_model.model.model.layers.1.input_layernorm.ln_tuning_layers.weight"


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def adapter_for(folder, base, tensors):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": str(base)})
    )
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


@pytest.fixture
def base(tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def adapter(tmp_path, base):
    return adapter_for(
        tmp_path / "adapter",
        base,
        {
            TRAINED: torch.ones(16),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(4, 16),
            "base_model.model.model.layers.0.mlp.up_proj.lora_magnitude_vector": torch.ones(16),
        },
    )


def test_the_base_model_is_inspected_under_the_adapters_name(adapter, base):
    document = json.loads(run(adapter, "-f", "json").stdout)
    assert document["target"] == str(adapter)
    assert document["model"]["class"] == "LlamaForCausalLM"
    assert document["adapter"] == {
        "base": str(base),
        "trains": ["model.layers.1.input_layernorm.weight"],
        "tensors": 3,
    }


def test_the_table_says_it_in_a_sentence(adapter):
    shown = " ".join(run(adapter).stdout.split())
    assert "it trains norm parameters model.layers.1.input_layernorm.weight" in shown


def test_an_adapter_that_trains_no_norm(tmp_path, base):
    found = adapter_for(tmp_path / "plain", base, {"x.lora_A.weight": torch.ones(4, 16)})
    assert "it trains no norm" in " ".join(run(found).stdout.split())


def test_two_adapters_of_one_base_share_no_answer(tmp_path, adapter, base):
    other = adapter_for(tmp_path / "other", base, {"x.lora_A.weight": torch.ones(4, 16)})
    run(adapter)
    assert json.loads(run(other, "-f", "json").stdout)["adapter"]["trains"] == []


def test_a_base_that_is_not_here(tmp_path):
    lost = adapter_for(tmp_path / "lost", "org/base", {"x": torch.ones(1)})
    result = run(lost, "--offline", "-f", "json")
    assert result.exit_code == 3
    failure = json.loads(result.stdout)
    assert failure["kind"] == "adapter_only"
    assert "an adapter for org/base" in failure["message"]
    assert "not in the cache" in failure["message"]
