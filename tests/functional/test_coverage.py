"""Families of each kind run whole, from their default configs, without weights."""

import pytest

from normscope.checkpoint import resolve_checkpoint
from normscope.inputs import run_traced
from normscope.model import build_on_meta
from normscope.tracing import trace_module

WHOLE = [
    "albert",  # a text encoder, one layer many times
    "t5",  # encoder and decoder
    "mixtral",  # experts
    "jetmoe",  # experts whose share of tokens is read from a list
    "mamba",  # a scan
    "rwkv",
    "vit",
    "swin",  # windows
    "resnet",
    "videomae",  # frames
    "clip",  # two towers
    "wav2vec2",  # a wave
    "whisper",  # a spectrogram of one length
    "audio-spectrogram-transformer",
    "encodec",  # a codec with a recurrent cell
    "patchtst",  # a time series
    "qwen2_5_vl_vision",  # packed patches
    "decision_transformer",
    "lxmert",  # boxes of an object detector
    "layoutlm",
    "mask2former",
    "superglue",  # pairs of images
    "fastspeech2_conformer",  # durations that are predicted
]


@pytest.mark.parametrize("name", WHOLE)
def test_a_family_runs_whole(name):
    traced = run_traced(build_on_meta(resolve_checkpoint(f"type:{name}")), trace_module)
    (root, *alone) = traced.roots
    assert root.path == ""
    assert not [part.path for part in alone]
    assert root.graph.outputs
    graph = root.graph
    assert any(graph.depends_on_weight[index] for index in graph.outputs)
    assert any(graph.depends_on_input[index] for index in graph.outputs)
