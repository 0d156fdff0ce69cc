"""transformers' own families, small: the verdicts were read from each forward(), not from names."""

import json
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.inspection import Inspection

PRE, POST, RES = (
    ("pre-norm", "x + f(N(x))"),
    ("post-norm", "N(x + f(x))"),
    ("res-post-norm", "x + N(f(x))"),
)
SANDWICH = ("sandwich-norm", "x + N(f(N(x)))")


def inspected(tmp_path: Path, model_type: str, **fields: object) -> Inspection:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": model_type, **fields}), encoding="utf-8")
    report = inspect_checkpoint(str(path))
    assert isinstance(report, Inspection), report
    return report


def stacks(report: Inspection) -> dict[str, list[tuple[str, str, str]]]:
    """Return the branches of each stack; all of its blocks must have the same."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for block in report.blocks:
        facts = [(item.kind.value, item.placement.value, item.formula) for item in block.branches]
        if block.stack is not None:
            assert found.setdefault(block.stack, facts) == facts, block.path
    return found


def branches(name: tuple[str, str], *kinds: str) -> list[tuple[str, str, str]]:
    return [(kind, *name) for kind in kinds]


TEXT = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
CASES = {
    "bert": (TEXT, {"encoder.layer": branches(POST, "attention", "mlp")}),
    "gpt2": (
        {"vocab_size": 64, "n_embd": 16, "n_layer": 3, "n_head": 2},
        {"h": branches(PRE, "attention", "mlp")},
    ),
    "llama": (TEXT, {"layers": branches(PRE, "attention", "mlp")}),
    "openai-gpt": (
        {"vocab_size": 64, "n_embd": 16, "n_layer": 3, "n_head": 2},
        {"h": branches(POST, "attention", "mlp")},
    ),
    "gptj": (
        {"vocab_size": 64, "n_embd": 16, "n_layer": 3, "n_head": 2, "rotary_dim": 4},
        {"h": branches(PRE, "attention", "mlp")},
    ),
    "falcon": (
        {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2},
        {"h": branches(PRE, "attention", "mlp")},
    ),
    "gemma2": (
        {**TEXT, "num_key_value_heads": 1, "head_dim": 8},
        {"layers": branches(SANDWICH, "attention", "mlp")},
    ),
    "olmo2": (TEXT, {"layers": branches(RES, "attention", "mlp")}),
    "mixtral": (
        {**TEXT, "num_key_value_heads": 1, "num_local_experts": 4},
        {"layers": branches(PRE, "attention", "moe")},
    ),
    "mamba": (
        {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 3, "state_size": 4},
        {"layers": branches(PRE, "ssm")},
    ),
    "t5": (
        {"vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 3, "num_heads": 2},
        {
            "encoder.block": branches(PRE, "attention", "mlp"),
            "decoder.block": branches(PRE, "attention", "cross-attention", "mlp"),
        },
    ),
    "bart": (
        {
            "vocab_size": 64,
            "d_model": 16,
            "encoder_layers": 3,
            "decoder_layers": 3,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
        },
        {
            "encoder.layers": branches(POST, "attention", "mlp"),
            "decoder.layers": branches(POST, "attention", "cross-attention", "mlp"),
        },
    ),
    "vit": (
        {
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "image_size": 32,
            "patch_size": 8,
        },
        {"layers": branches(PRE, "attention", "mlp")},
    ),
    "swinv2": (
        {"embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "image_size": 32, "window_size": 4},
        {"encoder.layers.*.blocks": branches(RES, "attention", "mlp")},
    ),
    "albert": (
        {**TEXT, "embedding_size": 8},
        {"encoder.albert_layer_groups.*.albert_layers": branches(POST, "attention", "mlp")},
    ),
    "xlm": (
        {"vocab_size": 64, "emb_dim": 16, "n_layers": 3, "n_heads": 2},
        {"attentions": branches(POST, "attention", "mlp")},
    ),
}


@pytest.mark.parametrize("model_type", CASES)
def test_every_block_of_a_family(model_type: str, tmp_path: Path) -> None:
    fields, expected = CASES[model_type]
    assert stacks(inspected(tmp_path, model_type, **fields)) == expected


def test_the_norms_of_a_family_keep_their_facts(tmp_path: Path) -> None:
    report = inspected(tmp_path, "gemma2", **CASES["gemma2"][0])
    assert {(norm.kind, norm.gain, norm.bias, norm.eps) for norm in report.norms} == {
        ("RMSNorm", "1+w", False, 1e-6)
    }
    report = inspected(tmp_path, "qwen3", **TEXT, head_dim=8, num_key_value_heads=1)
    inner = [norm for norm in report.norms if norm.role.value == "inside_branch"]
    assert {(norm.shape, norm.kind) for norm in inner} == {((8,), "RMSNorm")}
    assert len(inner) == 2 * 3


@pytest.mark.parametrize(("before", "name"), [(True, PRE), (False, POST)])
def test_opt_with_its_flag(before: bool, name: tuple[str, str], tmp_path: Path) -> None:
    report = inspected(
        tmp_path,
        "opt",
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=3,
        ffn_dim=32,
        num_attention_heads=2,
        word_embed_proj_dim=8,
        do_layer_norm_before=before,
    )
    assert stacks(report) == {"decoder.layers": branches(name, "attention", "mlp")}
    finals = [norm.name for norm in report.norms if norm.role.value == "final"]
    assert finals == (["decoder.final_layer_norm"] if before else [])


@pytest.mark.parametrize("after_norm", [False, True])
def test_bloom_with_the_skip_before_or_after_its_norm(after_norm: bool, tmp_path: Path) -> None:
    report = inspected(
        tmp_path,
        "bloom",
        vocab_size=64,
        hidden_size=16,
        n_layer=3,
        n_head=2,
        apply_residual_connection_post_layernorm=after_norm,
    )
    name = POST if after_norm else PRE
    assert stacks(report) == {"h": branches(name, "attention", "mlp")}
    assert report.norms[-1].role.value == "final"


@pytest.mark.parametrize("parallel", [True, False])
def test_gpt_neox_parallel_or_not(parallel: bool, tmp_path: Path) -> None:
    report = inspected(tmp_path, "gpt_neox", **TEXT, use_parallel_residual=parallel)
    assert stacks(report) == {"layers": branches(PRE, "attention", "mlp")}
    found = {item.parallel for block in report.blocks for item in block.branches}
    assert found == {parallel}
    assert not any(item.shared_norm for block in report.blocks for item in block.branches)


@pytest.mark.parametrize("stable", [True, False])
def test_wav2vec2_stable_or_not(stable: bool, tmp_path: Path) -> None:
    report = inspected(
        tmp_path,
        "wav2vec2",
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        conv_dim=[8, 8],
        conv_stride=[5, 2],
        conv_kernel=[10, 3],
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        do_stable_layer_norm=stable,
    )
    assert report.placement.value == ("pre-norm" if stable else "post-norm")
    (role,) = [norm.role.value for norm in report.norms if norm.name == "encoder.layer_norm"]
    assert role == ("final" if stable else "stack_input")


def test_resnet_names_the_axes_of_its_batch_norms(tmp_path: Path) -> None:
    report = inspected(
        tmp_path,
        "resnet",
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[2, 2],
        layer_type="basic",
    )
    assert report.placement.value == "res-post-norm"
    assert {(norm.kind, norm.axes) for norm in report.norms} == {("BatchNorm", (0, 2, 3))}


def test_mobilebert_norms_nothing_in_its_blocks(tmp_path: Path) -> None:
    report = inspected(
        tmp_path, "mobilebert", **{**TEXT, "embedding_size": 8, "intra_bottleneck_size": 8}
    )
    assert report.norms == ()
    assert report.placement.value == "no-norm"
