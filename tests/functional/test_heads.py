"""The classes that checkpoints are saved from: a head changes nothing below it."""

import json
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.inspection import Inspection

TEXT = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "eos_token_id": 2,
}
PAIR = {
    "vocab_size": 64,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "eos_token_id": 2,
    "pad_token_id": 1,
}
IMAGE = {**TEXT, "image_size": 32, "patch_size": 8}
WAVE = {**TEXT, "conv_dim": [8, 8], "conv_kernel": [10, 8], "conv_stride": [8, 8]}
WAVE |= {"num_feat_extract_layers": 2, "num_conv_pos_embedding_groups": 2}
SMALL_T5 = {"vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
SERIES = {"context_length": 16, "patch_length": 4, "patch_stride": 4, "num_input_channels": 2}
SERIES |= {"d_model": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "ffn_dim": 32}
CASES = [
    ("bert", TEXT, "BertForMaskedLM", "bert"),
    ("bert", TEXT, "BertForMultipleChoice", "bert"),  # answers to choose from
    ("bert", TEXT, "BertForQuestionAnswering", "bert"),
    ("llama", TEXT, "LlamaForCausalLM", "model"),
    ("llama", TEXT, "LlamaForSequenceClassification", "model"),
    ("bart", PAIR, "BartForConditionalGeneration", "model"),
    ("bart", PAIR, "BartForSequenceClassification", "model"),  # looks for the end of a sequence
    ("t5", {**SMALL_T5, "eos_token_id": 2}, "T5ForSequenceClassification", "transformer"),
    ("vit", IMAGE, "ViTForImageClassification", "vit"),
    ("vit", IMAGE, "ViTForMaskedImageModeling", "vit"),
    ("yolos", {**IMAGE, "image_size": [32, 32]}, "YolosForObjectDetection", "vit"),
    ("videomae", {**IMAGE, "num_frames": 4}, "VideoMAEForVideoClassification", "videomae"),
    ("videomae", {**IMAGE, "num_frames": 4}, "VideoMAEForPreTraining", "videomae"),
    ("wav2vec2", WAVE, "Wav2Vec2ForCTC", "wav2vec2"),
    ("wav2vec2", WAVE, "Wav2Vec2ForSequenceClassification", "wav2vec2"),
    ("patchtst", SERIES, "PatchTSTForPrediction", "model"),
]


def blocks(folder: Path, config: dict[str, object]) -> tuple[Inspection, dict[str, list[str]]]:
    """Return the report, and for each block of a stack what its branches are."""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    report = inspect_checkpoint(str(folder))
    assert isinstance(report, Inspection), report
    return report, {
        block.path: [f"{branch.kind}: {branch.formula}" for branch in block.branches]
        for block in report.blocks
        if block.stack is not None
    }


@pytest.mark.parametrize(("model_type", "fields", "head", "prefix"), CASES)
def test_the_blocks_under_a_head_are_those_of_the_bare_model(
    model_type, fields, head, prefix, tmp_path
):
    config = {"model_type": model_type, **fields}
    _, bare = blocks(tmp_path, config)
    report, under = blocks(tmp_path, {**config, "architectures": [head]})
    assert report.model.class_name == head
    assert not report.towers
    assert len(bare) >= 2
    assert {path: under.get(f"{prefix}.{path}") for path in bare} == bare
