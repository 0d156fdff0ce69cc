"""Checkpoints with quantized weights: looked at without their packages, refused to be measured."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.inspection import Inspection
from normscope.model import load_model
from normscope.pipeline import inspect_checkpoint

_CHANNELWISE = {"num_bits": 8, "type": "float", "strategy": "channel"}

METHODS: Mapping[str, Mapping[str, object]] = {
    "bitsandbytes": {"quant_method": "bitsandbytes", "load_in_4bit": True},
    "bitsandbytes, unnamed": {"load_in_8bit": True, "llm_int8_threshold": 6.0},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"},
    "compressed-tensors": {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": _CHANNELWISE}},
    },
    "fbgemm_fp8": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0},
    "exl2": {"quant_method": "exl2", "bits": 4.0},
}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def saved(folder: Path, quantization: Mapping[str, object]) -> str:
    config = transformers.LlamaConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        vocab_size=40,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    written["quantization_config"] = quantization
    (folder / "config.json").write_text(json.dumps(written))
    return str(folder)


@pytest.mark.parametrize("method", [*METHODS, "fp8"])
def test_inspect_needs_neither_packages_nor_devices(method: str, tmp_path: Path) -> None:
    answer = inspect_checkpoint(saved(tmp_path, METHODS.get(method, FP8)))
    assert isinstance(answer, Inspection)
    assert answer.placement == "pre-norm"
    assert len(answer.norms) == 3


@pytest.mark.parametrize("method", METHODS)
def test_measuring_says_why_it_cannot(method: str, tmp_path: Path) -> None:
    target = saved(tmp_path, METHODS[method])
    with pytest.raises(NormscopeError) as caught:
        load_model(resolve_checkpoint(target))
    assert caught.value.kind is FailureKind.MISSING_DEPENDENCY
    named = method.partition(",")[0]
    assert f"its weights are quantized ({named}) and cannot be run here: " in caught.value.message
    assert caught.value.hint.startswith(f"normscope inspect {target} works without")


def test_fp8_is_unpacked_where_nothing_computes_with_it(tmp_path: Path) -> None:
    target = saved(tmp_path, FP8)
    stored = load_file(tmp_path / "model.safetensors")
    expected: dict[str, torch.Tensor] = {}
    for name in [name for name in stored if name.endswith("proj.weight")]:
        scale = stored[name].abs().max() / 448
        small = (stored[name] / scale).to(torch.float8_e4m3fn)
        expected[name] = small.float() * scale
        stored[name] = small
        stored[f"{name}_scale_inv"] = scale.reshape(1, 1)
    save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded = load_model(resolve_checkpoint(target))
    weights = dict(loaded.module.named_parameters())
    assert loaded.dtype == "float32"
    assert len(expected) == 7
    for name, value in expected.items():
        assert torch.allclose(weights[name], value, rtol=1e-6)
