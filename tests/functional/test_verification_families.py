"""transformers' own families, small: the numbers of a smaller copy agree with each verdict."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.checkpoint import Checkpoint, resolve_checkpoint
from normscope.inspection import Inspection, Placement
from normscope.model import BuiltModel, build_on_meta
from normscope.pipeline import placed_root
from normscope.verification import Verification
from normscope.verification.verify import verify_inspection

TEXT = {"vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 2,
        "intermediate_size": 128, "max_position_embeddings": 64}  # fmt: skip
GPT = {"vocab_size": 64, "n_embd": 64, "n_layer": 5, "n_head": 2}
BLOOM = {"vocab_size": 64, "hidden_size": 64, "n_layer": 5, "n_head": 2}

CASES: dict[str, tuple[str, dict[str, object], str]] = {
    "bert": ("bert", TEXT, "post-norm"),
    "gpt2": ("gpt2", GPT, "pre-norm"),
    "gptj": ("gptj", {**GPT, "rotary_dim": 4}, "pre-norm"),
    "llama": ("llama", TEXT, "pre-norm"),
    "gemma2": ("gemma2", {**TEXT, "num_key_value_heads": 1, "head_dim": 16}, "sandwich-norm"),
    "olmo2": ("olmo2", TEXT, "res-post-norm"),
    "mixtral": ("mixtral", {**TEXT, "num_key_value_heads": 1, "num_local_experts": 4}, "pre-norm"),
    "minimax": (
        "minimax",
        {**TEXT, "num_key_value_heads": 1, "num_local_experts": 4, "head_dim": 32},
        "post-norm",
    ),
    "mamba": (
        "mamba",
        {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 3, "state_size": 4},
        "pre-norm",
    ),
    "t5": (
        "t5",
        {"vocab_size": 64, "d_model": 64, "d_kv": 32, "d_ff": 128, "num_layers": 3, "num_heads": 2},
        "pre-norm",
    ),
    "swinv2": (
        "swinv2",
        {
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 2],
            "image_size": 32,
            "window_size": 4,
        },
        "res-post-norm",
    ),
    "resnet": (
        "resnet",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [2, 2], "layer_type": "basic"},
        "res-post-norm",
    ),
    "albert": ("albert", {**TEXT, "embedding_size": 8}, "post-norm"),
    "bloom, skip before its norm": ("bloom", BLOOM, "pre-norm"),
    "bloom, skip after its norm": (
        "bloom",
        {**BLOOM, "apply_residual_connection_post_layernorm": True},
        "post-norm",
    ),
    "opt": (
        "opt",
        {
            "vocab_size": 64,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "ffn_dim": 32,
            "num_attention_heads": 2,
            "word_embed_proj_dim": 8,
        },
        "pre-norm",
    ),
}


def built(
    tmp_path: Path, model_type: str, fields: dict[str, object]
) -> tuple[Inspection, Checkpoint, BuiltModel]:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": model_type, **fields}), encoding="utf-8")
    report = inspect_checkpoint(str(path))
    assert isinstance(report, Inspection), report
    checkpoint = resolve_checkpoint(str(path))
    return report, checkpoint, build_on_meta(checkpoint)


def wrong(found: Verification) -> list[object]:
    return [item for item in (*found.branches, *found.norms) if not item.agrees]


@pytest.mark.parametrize("name", CASES)
def test_a_family_agrees_with_its_numbers(name: str, tmp_path: Path) -> None:
    model_type, fields, placement = CASES[name]
    report, checkpoint, model = built(tmp_path, model_type, fields)
    found = verify_inspection(report, checkpoint, model, placed_root)
    assert wrong(found) == []
    assert {branch.observed.value for branch in found.branches} == {placement}
    assert len(found.branches) == sum(len(block.branches) for block in report.blocks)
    modules = {norm.module for norm in report.norms if norm.module is not None}
    assert {norm.module for norm in found.norms} == modules


def test_the_copy_is_smaller_where_the_config_allows(tmp_path: Path) -> None:
    report, checkpoint, model = built(tmp_path, "llama", TEXT)
    found = verify_inspection(report, checkpoint, model, placed_root)
    assert found.copy.startswith("3 of 5 blocks, widths over 16")
    assert {branch.block for branch in found.branches} == {f"layers.{n}" for n in range(5)}


@pytest.mark.parametrize("name", ["bert", "llama", "minimax", "gemma2", "swinv2"])
def test_a_false_report_of_a_family_is_caught(name: str, tmp_path: Path) -> None:
    model_type, fields, placement = CASES[name]
    report, checkpoint, model = built(tmp_path, model_type, fields)
    false = Placement.NO_NORM
    blocks = tuple(
        replace(
            block,
            branches=tuple(replace(one, placement=false, sites=()) for one in block.branches),
        )
        for block in report.blocks
    )
    norms = tuple(replace(norm, eps=0.5) for norm in report.norms)
    found = verify_inspection(
        replace(report, blocks=blocks, norms=norms), checkpoint, model, placed_root
    )
    assert found.branches
    assert not any(branch.agrees for branch in found.branches)
    assert {branch.observed.value for branch in found.branches} == {placement}
    assert found.norms
    assert not any(norm.agrees for norm in found.norms)


def test_a_skip_that_is_taken_from_a_norm_is_seen(tmp_path: Path) -> None:
    fields = {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [2, 2], "num_groups": 4}
    report, checkpoint, model = built(tmp_path, "bit", fields)
    found = verify_inspection(report, checkpoint, model, placed_root)
    assert wrong(found) == []
    assert {item.placement.value for block in report.blocks for item in block.branches} == {
        "other", "pre-norm",
    }  # fmt: skip
    assert len(found.branches) == 4


def test_a_batch_norm_on_the_branch_is_seen(tmp_path: Path) -> None:
    fields = {"embed_dims": [16, 16, 16, 16], "depths": [2, 1, 1, 1], "mlp_ratio": 2}
    report, checkpoint, model = built(tmp_path, "swiftformer", fields)
    found = verify_inspection(report, checkpoint, model, placed_root)
    assert wrong(found) == []
    assert {item.observed.value for item in found.branches} == {"no-norm", "pre-norm"}


def test_one_false_block_among_true_ones_is_caught(tmp_path: Path) -> None:
    report, checkpoint, model = built(tmp_path, "gpt2", GPT)
    odd = replace(
        report.blocks[4],
        branches=tuple(replace(one, placement=Placement.POST) for one in report.blocks[4].branches),
    )
    blocks = (*report.blocks[:4], odd)
    found = verify_inspection(replace(report, blocks=blocks), checkpoint, model, placed_root)
    assert {branch.block for branch in found.branches if not branch.agrees} == {"h.4"}
