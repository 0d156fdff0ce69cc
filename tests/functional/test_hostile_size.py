"""Configs that would fill the machine or never end: an answer that says so."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.inputs import run_traced
from normscope.limits import Limits, OverLimit, within
from normscope.model import BuiltModel, build_on_meta
from normscope.pipeline import InspectOptions, inspect_checkpoint
from normscope.tracing import trace_module

TINY = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 40,
}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **TINY}
VIT = {
    "model_type": "vit",
    "architectures": ["ViTModel"],
    "image_size": 8,
    "patch_size": 4,
    **TINY,
}
GB = 1_000_000_000


def kind_of(place: Path, config: object, **limits: object) -> FailureKind:
    text = config if isinstance(config, str) else json.dumps(config)
    (place / "config.json").write_text(text)
    answer = inspect_checkpoint(str(place), InspectOptions(limits=Limits(**limits)))
    return answer.kind


def test_layers_without_end(tmp_path: Path) -> None:
    many = {**LLAMA, "num_hidden_layers": 10**9}
    assert kind_of(tmp_path, many, modules=300) is FailureKind.TOO_LARGE


def test_as_many_modules_as_allowed_are_built(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    checkpoint = resolve_checkpoint(str(tmp_path))
    count = len([*build_on_meta(checkpoint).module.modules()]) - 1
    build_on_meta(checkpoint, limits=Limits(modules=count))
    with pytest.raises(OverLimit, match=f"more than {count - 1} modules"):
        build_on_meta(checkpoint, limits=Limits(modules=count - 1))


def test_a_config_that_makes_a_list_of_its_layers(tmp_path: Path) -> None:
    many = {**LLAMA, "model_type": "qwen3", "architectures": [], "num_hidden_layers": 10**9}
    (tmp_path / "config.json").write_text(json.dumps(many))
    limits = Limits(config_seconds=0.3, memory=GB)  # memory only where the time is not kept
    answer = inspect_checkpoint(str(tmp_path), InspectOptions(limits=limits))
    assert answer.kind is FailureKind.TOO_LARGE
    assert "its config takes more than 0.3 seconds of computing" in answer.message


@pytest.mark.parametrize("width", [10**12, 10**19, 2**63])
def test_widths_that_no_tensor_has(width: int, tmp_path: Path) -> None:
    wide = {**LLAMA, "hidden_size": width, "intermediate_size": width}
    assert kind_of(tmp_path, wide) is FailureKind.TOO_LARGE


@pytest.mark.parametrize(
    "change", [{"image_size": 10**6}, {"num_channels": 10**9}, {"image_size": 10**9}]
)
def test_inputs_that_no_memory_holds(change: dict[str, int], tmp_path: Path) -> None:
    assert kind_of(tmp_path, {**VIT, **change}, memory=GB) is FailureKind.TOO_LARGE


@pytest.mark.parametrize(
    "change", [{"image_size": -1}, {"patch_size": 0}, {"patch_size": -4}, {"num_channels": -1}]
)
def test_inputs_of_no_size_are_an_answer(change: dict[str, int], tmp_path: Path) -> None:
    known = {
        FailureKind.NO_INPUTS,
        FailureKind.TRACE_FAILED,
        FailureKind.UNKNOWN_ARCHITECTURE,
    }
    assert kind_of(tmp_path, {**VIT, **change}) in known


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), "16", [16], {"a": 1}, None, True, 1e308]
)
@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "rms_norm_eps"])
def test_values_of_the_wrong_kind_are_an_answer(key: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, key: value}))
    answer = inspect_checkpoint(str(tmp_path))
    assert hasattr(answer, "placement") or answer.kind in {
        FailureKind.UNKNOWN_ARCHITECTURE,
        FailureKind.TOO_LARGE,
        FailureKind.TRACE_FAILED,
    }


@pytest.mark.parametrize("depth", [101, 900, 10_000])
def test_values_deep_in_one_another(depth: int, tmp_path: Path) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inner = opening * depth + "1" + closing * depth
        text = f'{{"model_type": "llama", "deep": {inner}}}'
        assert kind_of(tmp_path, text) is FailureKind.TOO_LARGE


def test_a_number_longer_than_python_reads(tmp_path: Path) -> None:
    text = f'{{"model_type": "llama", "hidden_size": {"9" * 5000}}}'
    assert kind_of(tmp_path, text) is FailureKind.CORRUPT


@pytest.mark.parametrize("name", ["config.json", "adapter_config.json"])
def test_a_config_of_two_gigabytes(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(2 * GB)
    answer = inspect_checkpoint(str(tmp_path), InspectOptions(limits=Limits(memory=GB)))
    assert answer.kind is FailureKind.TOO_LARGE
    assert "larger than 32 MB" in answer.message


def test_an_adapter_that_adapts_itself(tmp_path: Path) -> None:
    for name, base in (("a", "b"), ("b", "a"), ("c", "c")):
        (tmp_path / name).mkdir()
        content = {"base_model_name_or_path": str(tmp_path / base)}
        (tmp_path / name / "adapter_config.json").write_text(json.dumps(content))
    for name in "abc":
        answer = inspect_checkpoint(str(tmp_path / name))
        assert answer.kind is FailureKind.ADAPTER_ONLY


class _Endless(nn.Module):
    """Runs until it is stopped, and takes every error for its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, inputs_embeds: torch.Tensor) -> torch.Tensor:
        for _ in range(100_000):
            try:
                inputs_embeds = self.linear(inputs_embeds)
            except Exception:  # noqa: BLE001
                inputs_embeds = inputs_embeds.clone()
        return inputs_embeds


def test_operations_without_end_stop_the_search_for_inputs() -> None:
    tries: list[int] = []

    def trace(module: nn.Module, inputs: object, positional: tuple[object, ...]) -> object:
        tries.append(1)
        return trace_module(module, inputs, positional, limits=Limits(operations=50))

    built = BuiltModel(
        target="it",
        module=_Endless().to("meta"),
        config=None,
        class_name="_Endless",
        model_type=None,
        dtype="float32",
        parameters=6,
        inputs=((torch.zeros(1, 3, 2),), {}),
    )
    with pytest.raises(OverLimit, match="50 operations"):
        run_traced(built, trace)
    assert len(tries) == 1


def test_as_many_operations_as_allowed_are_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    few = inspect_checkpoint(str(tmp_path), InspectOptions(limits=Limits(operations=20)))
    assert few.kind is FailureKind.TOO_LARGE
    assert "--max-operations" in few.hint


def _computes() -> None:
    for _ in range(1_000_000):
        with suppress(Exception):
            sum(range(1_000))


def _takes_memory() -> None:
    held = [bytearray(100_000_000) for _ in range(40)]
    held.clear()


@pytest.mark.parametrize(
    ("act", "limits", "option"),
    [
        (_computes, Limits(seconds=0.2), "--timeout"),
        (_takes_memory, Limits(memory=GB), "--memory-limit"),
    ],
    ids=["time", "memory"],
)
def test_what_nothing_counts_is_stopped(
    act: Callable[[], None], limits: Limits, option: str
) -> None:
    with pytest.raises(NormscopeError) as caught, within("it", limits):
        act()
    assert caught.value.kind is FailureKind.TOO_LARGE
    assert option in caught.value.hint
    held = bytearray(2 * GB)  # the limit is gone with the block
    assert len(held) == 2 * GB


def test_a_failure_within_limits_is_itself() -> None:
    with pytest.raises(ZeroDivisionError), within("it", Limits(seconds=60.0, memory=GB)):
        raise ZeroDivisionError
