"""Checkpoints with quantized weights: structure and norms from config and headers alone."""

import json

import pytest
import torch
import transformers
from safetensors.torch import save_file
from typer.testing import CliRunner

from normscope.cli.app import app

SHAPE = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


def ints(*shape, dtype=torch.int32):
    return torch.zeros(*shape, dtype=dtype)


def gptq(name, value):
    rows, columns = value.shape
    return {
        f"{name}.qweight": ints(columns // 8, rows),
        f"{name}.qzeros": ints(2, rows // 8),
        f"{name}.scales": torch.ones(2, rows, dtype=torch.float16),
        f"{name}.g_idx": ints(columns),
    }


def fp8(name, value):
    scale = torch.ones(1, 1)
    return {f"{name}.weight": value.to(torch.float8_e4m3fn), f"{name}.weight_scale_inv": scale}


def four_bits(name, value):
    return {
        f"{name}.weight": ints(value.numel() // 2, 1, dtype=torch.uint8),
        f"{name}.weight.absmax": torch.ones(4),
        f"{name}.weight.quant_map": torch.zeros(16),
        f"{name}.weight.quant_state.bitsandbytes__nf4": ints(30, dtype=torch.uint8),
    }


def eight_bits(name, value):
    return {
        f"{name}.weight": value.to(torch.int8),
        f"{name}.SCB": torch.ones(len(value)),
        f"{name}.weight_format": ints(1, dtype=torch.uint8),
    }


def compressed(name, value):
    packed = {
        f"{name}.weight_packed": ints(len(value), value.shape[1] // 8),
        f"{name}.weight_scale": torch.ones(len(value), 2),
        f"{name}.weight_shape": ints(2, dtype=torch.int64),
    }
    if name.endswith("self_attn.k_proj"):  # the cache has scales too
        packed[f"{name.removesuffix('.k_proj')}.k_scale"] = torch.ones(1)
    return packed


def unheard_of(name, value):
    return {f"{name}.codes": ints(len(value), dtype=torch.int16), f"{name}.book": torch.ones(16)}


METHODS = {
    "gptq": (gptq, {"bits": 4, "group_size": 16, "desc_act": True}),
    "awq": (gptq, {"bits": 4, "group_size": 16, "zero_point": True}),
    "fp8": (fp8, {"activation_scheme": "dynamic", "weight_block_size": [128, 128]}),
    "bitsandbytes": (four_bits, {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}),
    "bitsandbytes-8": (eight_bits, {"load_in_8bit": True}),
    "compressed-tensors": (compressed, {"format": "pack-quantized", "config_groups": {}}),
    "unheard-of": (unheard_of, {}),
}


def saved(folder, model, quantize, config, more=None):
    """Write a model as a checkpoint whose projections are quantized."""
    tensors = dict(more or {})
    for name, value in model.state_dict().items():
        module, _, last = name.rpartition(".")
        if value.dim() == 2 and module.endswith("_proj") and last == "weight":
            tensors |= quantize(module, value)
        else:
            tensors[name] = value.clone()
    facts = model.config.to_dict() | {"architectures": [type(model).__name__]}
    (folder / "config.json").write_text(json.dumps(facts | {"quantization_config": config}))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def stored_of(folder):
    result = CliRunner().invoke(
        app, ["inspect", str(folder), "--weights", "norms", "-f", "json", "--no-cache"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["placement"] == "pre-norm"
    return found["stored"]


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE))


@pytest.mark.parametrize("method", METHODS)
def test_norms_are_found_and_scales_are_no_surprise(tmp_path, method):
    quantize, config = METHODS[method]
    config = {"quant_method": method.partition("-8")[0], **config}
    stored = stored_of(saved(tmp_path, llama(), quantize, config))
    assert len(stored["parameters"]) == 5
    assert {item["problem"] for item in stored["parameters"]} == {None}
    assert all(item["values"]["mean"] == 1 for item in stored["parameters"])
    assert stored["unexpected"] == []
    assert stored["quantized"] >= 14


def test_tensors_of_norms_are_a_surprise_in_a_quantized_checkpoint_too(tmp_path):
    more = {
        "model.norm.bias": torch.zeros(32),
        "model.layers.0.self_attn.q_norm.weight": torch.ones(16),
    }
    quantize, config = METHODS["gptq"]
    folder = saved(tmp_path, llama(), quantize, {"quant_method": "gptq", **config}, more)
    stored = stored_of(folder)
    assert stored["unexpected"] == sorted(more)
    assert stored["quantized"] == 4 * 14


def test_without_the_word_of_the_config_all_is_listed(tmp_path):
    folder = saved(tmp_path, llama(), gptq, None)
    stored = stored_of(folder)
    assert len(stored["unexpected"]) == 4 * 14
    assert stored["quantized"] == 0


def test_experts_that_are_packed_one_by_one(tmp_path):
    config = transformers.MixtralConfig(**SHAPE, num_local_experts=2, num_experts_per_tok=1)
    model = transformers.MixtralForCausalLM(config)
    more = {}
    for number in range(4):
        block, expert = divmod(number, 2)
        place = f"model.layers.{block}.block_sparse_moe.experts.{expert}.w1"
        more |= gptq(place, torch.zeros(32, 32))
    stored = stored_of(saved(tmp_path, model, gptq, {"quant_method": "gptq", "bits": 4}, more))
    assert {item["problem"] for item in stored["parameters"]} == {None}
    assert stored["unexpected"] == []


def test_blocks_of_joined_experts(tmp_path):
    config = transformers.GptOssConfig(
        **SHAPE, num_local_experts=2, num_experts_per_tok=1, layer_types=["full_attention"] * 2
    )
    model = transformers.GptOssForCausalLM(config)
    more = {
        f"model.layers.{block}.mlp.experts.{name}_{part}": ints(2, 4, 16, dtype=torch.uint8)
        for block in range(2)
        for name in ("gate_up_proj", "down_proj")
        for part in ("blocks", "scales")
    }
    stored = stored_of(saved(tmp_path, model, lambda *_: {}, {"quant_method": "mxfp4"}, more))
    assert {item["problem"] for item in stored["parameters"]} == {None}
    assert (stored["unexpected"], stored["quantized"]) == ([], 8)
