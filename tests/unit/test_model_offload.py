"""Checkpoint larger than memory -> the same numbers, with the weights left in their files."""

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.model import Offload, load_model, packages, stored_parameter
from normscope.statistics import Statistics

NOTHING = Offload(memory=0)


def llama() -> nn.Module:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=16,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            vocab_size=40,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def mixtral() -> nn.Module:
    """Its experts are stored one by one and must be joined before they are offloaded."""
    return transformers.MixtralForCausalLM(
        transformers.MixtralConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            vocab_size=40,
            num_local_experts=3,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def mamba2() -> nn.Module:
    """One of its norms is read inside a module."""
    return transformers.Mamba2Model(
        transformers.Mamba2Config(
            hidden_size=16,
            num_hidden_layers=1,
            vocab_size=40,
            num_heads=4,
            head_dim=8,
            state_size=8,
            n_groups=2,
            chunk_size=8,
        )
    )


def gpt2() -> nn.Module:
    """Tied weights, a bias with each gain."""
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_embd=16,
            n_layer=2,
            n_head=2,
            vocab_size=40,
            n_positions=16,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def saved(build: Callable[[], nn.Module], folder: Path, *, shards: str = "10KB") -> str:
    torch.manual_seed(0)
    model = build()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 and name.endswith("weight"):
            nn.init.uniform_(parameter, 0.5, 1.5)
    model.save_pretrained(folder, max_shard_size=shards)
    return str(folder)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return saved(llama, tmp_path)


def measured(target: str, offload: Offload | None) -> Statistics:
    ids = [[5, 6, 7, 8, 9, 10], [3, 4]]
    return measure_checkpoint(target, MeasureOptions(input_ids=ids, offload=offload))


def numbers(statistics: Statistics) -> list[float]:
    return [
        value
        for norm in statistics.norms
        for point in (norm.before, norm.after)
        for values in (point.mean, point.variance, point.peak)
        for value in values
    ]


@pytest.mark.parametrize("build", [llama, mixtral, mamba2, gpt2])
@pytest.mark.parametrize("memory", [0, 10_000])
def test_the_numbers_are_those_of_a_plain_run(
    build: Callable[[], nn.Module], memory: int, tmp_path: Path
) -> None:
    target = saved(build, tmp_path)
    plain, spread = measured(target, None), measured(target, Offload(memory=memory))
    assert [norm.name for norm in spread.norms] == [norm.name for norm in plain.norms]
    assert [norm.problem for norm in spread.norms] == [None] * len(plain.norms)
    assert numbers(spread) == pytest.approx(numbers(plain), rel=1e-6)
    assert replace(spread, norms=(), findings=()) == replace(plain, norms=(), findings=())
    assert [finding.code for finding in spread.findings] == [f.code for f in plain.findings]


def test_the_weights_are_only_there_while_they_are_used(checkpoint: str) -> None:
    loaded = load_model(resolve_checkpoint(checkpoint), offload=NOTHING)
    assert {parameter.device.type for parameter in loaded.module.parameters()} == {"meta"}
    assert loaded.skeleton is not None
    assert loaded.parameters == sum(p.numel() for p in llama().parameters())
    seen: list[torch.device] = []
    norm = loaded.module.get_submodule("model.norm")
    norm.register_forward_hook(lambda module, _args, _out: seen.append(module.weight.device))
    with torch.no_grad():
        loaded.module(input_ids=torch.tensor([[3, 4]]))
    assert [device.type for device in seen] == ["meta"]


def test_a_gain_is_taken_from_its_file(checkpoint: str) -> None:
    plain = dict(load_model(resolve_checkpoint(checkpoint)).module.named_parameters())
    module = load_model(resolve_checkpoint(checkpoint), offload=NOTHING).module
    for name in ("model.norm.weight", "model.layers.1.input_layernorm.weight"):
        assert torch.equal(stored_parameter(module, name), plain[name])


def test_what_fits_is_loaded_as_ever(checkpoint: str) -> None:
    loaded = load_model(resolve_checkpoint(checkpoint), offload=Offload(memory=10**9))
    assert loaded.skeleton is None
    assert {parameter.device.type for parameter in loaded.module.parameters()} == {"cpu"}


def test_nothing_is_printed_and_no_file_stays(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = saved(mixtral, tmp_path / "model")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    capfd.readouterr()
    loaded = load_model(resolve_checkpoint(target), offload=NOTHING)
    assert capfd.readouterr() == ("", "")
    assert any(scratch.rglob("*.experts.down_proj.safetensors"))
    del loaded
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_without_accelerate_the_extra_is_named(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _name: None)
    with pytest.raises(NormscopeError, match="needs the package accelerate") as caught:
        load_model(resolve_checkpoint(checkpoint), offload=NOTHING)
    assert caught.value.kind is FailureKind.MISSING_DEPENDENCY
    assert caught.value.hint == "pip install 'normscope[large]'"


def test_what_cannot_be_offloaded_is_a_usage_error(checkpoint: str) -> None:
    with pytest.raises(UsageError, match="no device map 'all'"):
        load_model(resolve_checkpoint(checkpoint), offload=Offload(device_map="all"))
    with pytest.raises(UsageError, match="--device cuda does too"):
        load_model(resolve_checkpoint(checkpoint), offload=NOTHING, device="cuda")
    with pytest.raises(UsageError, match="already in memory"):
        measure_checkpoint("py:collections:OrderedDict", MeasureOptions(offload=NOTHING))


@pytest.mark.parametrize("build", [llama, gpt2, mamba2])
def test_formulas_are_verified_with_gains_from_the_files(
    build: Callable[[], nn.Module], tmp_path: Path
) -> None:
    target = saved(build, tmp_path)
    options = MeasureOptions(input_ids=[[5, 6, 7, 8]], verify=True)
    plain = measure_checkpoint(target, options)
    spread = measure_checkpoint(target, replace(options, offload=NOTHING))
    errors = [norm.error for norm in spread.norms]
    assert errors == [norm.error for norm in plain.norms]
    assert all(error is not None and error < 1e-5 for error in errors)
    assert [norm.normalized for norm in spread.norms] == [n.normalized for n in plain.norms]
