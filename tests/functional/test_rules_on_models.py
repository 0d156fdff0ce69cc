"""Rules on models that run: what each says of the real wiring, and of its nearest neighbour."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

from normscope import inspect_checkpoint, inspect_module
from normscope.audit.findings import Severity
from normscope.inspection import Inspection
from specimens.build import Perceptron, build
from specimens.observed import found, observed, severities
from specimens.spec import Spec

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 40}
LLAMA_LIKE = {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2}
OPT = {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32, "max_position_embeddings": 32}


def built(tmp_path: Path, model_type: str, **settings: object) -> Inspection:
    """Inspect a small config of a family."""
    config = transformers.CONFIG_MAPPING[model_type](**settings)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    answer = inspect_checkpoint(str(tmp_path))
    assert isinstance(answer, Inspection), answer
    return answer


# NS102: OPT's converter lost the final norm, and only the post-norm size still worked.


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"_remove_final_layer_norm": True}, 1),
        ({}, 0),
        ({"do_layer_norm_before": False}, 0),
    ],
)
@pytest.mark.parametrize("architectures", [None, ["OPTForCausalLM"]])
def test_the_final_norm_that_opt_lost(
    tmp_path: Path, settings: dict[str, bool], count: int, architectures: list[str] | None
) -> None:
    made = built(tmp_path, "opt", **OPT, **settings, architectures=architectures)
    assert len(observed("NS102", made)) == count


def test_a_stack_that_a_pooled_norm_ends_is_ended(tmp_path: Path) -> None:
    settings = {**SMALL, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
    settings.pop("vocab_size")
    made = built(tmp_path, "beit", **settings, use_mean_pooling=True)
    assert made.stacks[0].ended_by == ("pooler.layernorm",)
    assert observed("NS102", made) == []


def test_each_tower_has_its_own_end() -> None:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, _ = build(Spec(final_norm=True))
            self.b, _ = build(Spec(final_norm=False))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(x) @ self.b(x).transpose(1, 2)

    made = inspect_module(Towers().eval(), torch.randn(2, 6, 16))
    assert {stack.path: stack.ended_by for stack in made.stacks} == {"a.z": ("a.f",), "b.z": ()}
    assert [seen.where for seen in observed("NS102", made)] == ["b.z"]


@pytest.mark.parametrize("placement", ["pre-norm", "sandwich-norm", "post-norm", "res-post-norm"])
@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize("parent_adds", [True, False])
def test_only_a_growing_stream_needs_an_end(
    placement: str, final_norm: bool, parent_adds: bool
) -> None:
    spec = Spec(placement=placement, final_norm=final_norm, parent_adds=parent_adds)
    module, x = build(spec)
    seen = observed("NS102", inspect_module(module, x))
    assert bool(seen) == (placement in {"pre-norm", "sandwich-norm"} and not final_norm)


# NS108: n = N(x); n + f(n).


@pytest.mark.parametrize(
    ("model_type", "settings", "count"),
    [
        ("minimax", {**LLAMA_LIKE, "head_dim": 8, "num_local_experts": 2}, 1),
        ("llama", LLAMA_LIKE, 0),
        ("bert", {**SMALL, "intermediate_size": 48}, 0),
        ("bloom", {**SMALL, "apply_residual_connection_post_layernorm": True}, 1),
        ("bloom", SMALL, 0),
    ],
)
def test_a_stack_that_skips_from_its_norms(
    tmp_path: Path, model_type: str, settings: dict[str, object], count: int
) -> None:
    made = built(tmp_path, model_type, **settings)
    seen = observed("NS108", made)
    assert severities("NS108", seen) == [Severity.NOTE] * count
    assert [item.where for item in seen] == [stack.path for stack in made.stacks][:count]


class Block(nn.Module):
    """Pre-norm; with a fault, the skip is the norm's output, or the norm is passed by."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.n, self.m, self.fault = nn.LayerNorm(16), Perceptron(16), fault

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fault == "skips from the norm":
            x = self.n(x)
            return x + self.m(x)
        return x + self.m(x if self.fault == "passes the norm by" else self.n(x))


class Model(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.z, self.f = nn.ModuleList(blocks), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.z:
            x = block(x)
        return self.f(x)


def inspected(*faults: str) -> Inspection:
    torch.manual_seed(0)
    return inspect_module(Model(*map(Block, faults)).eval(), 3 * torch.randn(2, 6, 16) + 1)


def test_one_block_that_skips_from_its_norm_is_an_error() -> None:
    made = inspected("", "", "skips from the norm", "", "")
    seen = observed("NS108", made)
    assert [item.where for item in seen] == ["z.2"]
    assert severities("NS108", seen) == [Severity.ERROR]
    assert [item.where for item in observed("NS101", made)] == ["z.2"]
    assert observed("NS108", inspected("", "", "")) == []


def test_one_block_that_passes_its_norm_by() -> None:
    made = inspected("", "", "passes the norm by", "", "")
    assert [item.where for item in observed("NS103", made)] == ["z.2"]
    assert [item.where for item in observed("NS101", made)] == ["z.2"]
    (idle,) = observed("NS105", made)
    assert (idle.where, idle.found, idle.severity) == ("z.2.n", "no run", None)
    for code in ("NS101", "NS103", "NS105"):
        assert observed(code, inspected("", "", "")) == []


def test_a_block_whose_attention_reads_the_embedding_norm(tmp_path: Path) -> None:
    settings = {**SMALL, "intermediate_size": 48, "vocab_size": 60}
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 5)
    made = built(tmp_path, "modernbert", **settings, **tokens, cls_token_id=5, sep_token_id=5)
    (seen,) = observed("NS103", made)
    assert (seen.where, seen.severity) == ("layers.0", Severity.NOTE)
    assert observed("NS101", made) == []


# NS201: eps as it runs beside eps as the config has it.


@pytest.mark.parametrize(
    ("model_type", "settings", "places"),
    [
        (
            "biogpt",  # its norms take torch's default
            {**SMALL, "intermediate_size": 48, "layer_norm_eps": 1e-12},
            ["layers.*.self_attn_layer_norm", "layers.*.final_layer_norm", "layer_norm"],
        ),
        ("biogpt", {**SMALL, "intermediate_size": 48, "layer_norm_eps": 1e-5}, []),
        ("llama", {**LLAMA_LIKE, "rms_norm_eps": 3e-6}, []),
    ],
)
def test_an_eps_that_the_code_does_not_read(
    tmp_path: Path, model_type: str, settings: dict[str, object], places: list[str]
) -> None:
    assert [one.where for one in found("NS201", built(tmp_path, model_type, **settings))] == places


def test_the_settings_of_the_parts_of_a_config(tmp_path: Path) -> None:
    text = {**SMALL, "intermediate_size": 48, "layer_norm_eps": 2e-5}
    vision = {**text, "image_size": 32, "patch_size": 8, "layer_norm_eps": 3e-6}
    vision.pop("vocab_size")
    made = built(tmp_path, "clip", text_config=text, vision_config=vision, projection_dim=16)
    assert {item.key: item.value for item in made.model.eps_settings} == {
        "text_config.layer_norm_eps": 2e-5,
        "vision_config.layer_norm_eps": 3e-6,
    }
    assert observed("NS201", made) == []


# NS203: squares and sums in half precision.


class Written(nn.Module):
    """An RMS norm that casts up before it squares, after, or not at all."""

    def __init__(self, cast: str) -> None:
        super().__init__()
        self.weight, self.cast = nn.Parameter(torch.ones(16)), cast

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value = x if self.cast == "never" else x.float()
        squares = value.pow(2) if self.cast == "before" else x.pow(2)
        squares = squares if self.cast == "never" else squares.float()
        scaled = value * torch.rsqrt(squares.mean(-1, keepdim=True) + 1e-6)
        return self.weight * scaled.to(x.dtype)


class Normed(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.n, self.m = norm, Perceptron(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.m(self.n(x))


@pytest.mark.parametrize(
    ("cast", "told"),
    [
        ("before", []),
        ("after", ["squares before the upcast"]),
        ("never", ["statistics in half precision"]),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "severity"),
    [(torch.bfloat16, Severity.WARNING), (torch.float32, Severity.NOTE)],
)
def test_where_the_upcast_stands(
    cast: str, told: list[str], dtype: torch.dtype, severity: Severity
) -> None:
    module = Model(*(Normed(Written(cast)) for _ in range(2))).to(dtype).eval()
    made = inspect_module(module, torch.randn(2, 6, 16, dtype=dtype))
    seen = found("NS203", made)
    assert [(one.where, one.found) for one in seen] == [("z.*.n", text) for text in told]
    assert [one.severity for one in seen] == [severity for _ in told]


def test_healthy_defaults_are_left_in_peace(tmp_path: Path) -> None:
    sizes = {"intermediate_size": 48}
    for model_type, settings in (
        ("bert", {**SMALL, **sizes}),
        ("llama", LLAMA_LIKE),
        ("gemma2", {**LLAMA_LIKE, "head_dim": 8}),
        ("qwen3", {**LLAMA_LIKE, "head_dim": 8}),
    ):
        made = built(tmp_path, model_type, **settings)
        for code in ("NS101", "NS102", "NS103", "NS105", "NS107", "NS108", "NS201", "NS203"):
            assert observed(code, made) == [], (model_type, code)
        lost = observed("NS202", replace(made, norms=made.norms))
        assert severities("NS202", lost) == [Severity.NOTE] * (model_type == "bert")
