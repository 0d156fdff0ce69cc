"""Small GGUF files of random float32 weights, as llama.cpp's converter lays them out."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, HEADS, KV_HEADS, HEAD, LAYERS = 16, 32, 2, 1, 8, 2
TOKENS = ["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "c", "d"]


class _File:
    """One file while it is written."""

    def __init__(self, path: Path, architecture: str, *, positions: int = 32) -> None:
        self.writer = gguf.GGUFWriter(path, architecture)
        self._random = np.random.default_rng(0)
        self.tensors: dict[str, np.ndarray] = {}
        self.writer.add_block_count(LAYERS)
        self.writer.add_context_length(positions)
        self.writer.add_embedding_length(WIDTH)
        self.writer.add_feed_forward_length(INNER)
        self.writer.add_head_count(HEADS)
        self.writer.add_vocab_size(len(TOKENS))
        self.writer.add_tokenizer_model("llama")
        self.writer.add_token_list(TOKENS)
        self.writer.add_token_scores([float(-index) for index in range(len(TOKENS))])
        self.writer.add_token_types([2, 3, 3] + [1] * (len(TOKENS) - 3))
        self.writer.add_bos_token_id(1)
        self.writer.add_eos_token_id(2)
        self.writer.add_unk_token_id(0)

    def add(self, name: str, *shape: int, around: float = 0.0) -> None:
        values = around + 0.1 * self._random.standard_normal(shape)
        self.tensors[name] = values.astype(np.float32)
        self.writer.add_tensor(name, self.tensors[name])

    def close(self) -> Mapping[str, np.ndarray]:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.tensors


def write_llama_like(path: Path, architecture: str = "llama") -> Mapping[str, np.ndarray]:
    """Write RMS norms and a gated MLP; `gemma3` adds norms behind each branch and of q and k."""
    file = _File(path, architecture)
    gemma = architecture == "gemma3"
    file.writer.add_layer_norm_rms_eps(1e-5)
    file.writer.add_head_count_kv(KV_HEADS)
    file.writer.add_rope_dimension_count(HEAD)
    file.writer.add_key_length(HEAD)
    file.writer.add_value_length(HEAD)
    file.add("token_embd.weight", len(TOKENS), WIDTH)
    file.add("output_norm.weight", WIDTH, around=1.0)
    if not gemma:
        file.add("output.weight", len(TOKENS), WIDTH)
    for index in range(LAYERS):
        block = f"blk.{index}."
        norms = ["attn_norm", "ffn_norm"]
        if gemma:
            norms += ["post_attention_norm", "post_ffw_norm"]
            file.add(f"{block}attn_q_norm.weight", HEAD, around=1.0)
            file.add(f"{block}attn_k_norm.weight", HEAD, around=1.0)
        for norm in norms:
            file.add(f"{block}{norm}.weight", WIDTH, around=1.0)
        file.add(f"{block}attn_q.weight", WIDTH, WIDTH)
        file.add(f"{block}attn_k.weight", KV_HEADS * HEAD, WIDTH)
        file.add(f"{block}attn_v.weight", KV_HEADS * HEAD, WIDTH)
        file.add(f"{block}attn_output.weight", WIDTH, WIDTH)
        file.add(f"{block}ffn_gate.weight", INNER, WIDTH)
        file.add(f"{block}ffn_up.weight", INNER, WIDTH)
        file.add(f"{block}ffn_down.weight", WIDTH, INNER)
    return file.close()


def write_gpt2_like(path: Path) -> Mapping[str, np.ndarray]:
    """Write LayerNorms with a bias; transformers expects GPT-2's 1024 positions."""
    file = _File(path, "gpt2", positions=1024)
    file.writer.add_layer_norm_eps(1e-5)
    file.add("token_embd.weight", len(TOKENS), WIDTH)
    file.add("position_embd.weight", 1024, WIDTH)
    _with_bias(file, "output_norm", WIDTH, around=1.0)
    file.add("output.weight", len(TOKENS), WIDTH)
    for index in range(LAYERS):
        block = f"blk.{index}."
        for norm in ("attn_norm", "ffn_norm"):
            _with_bias(file, f"{block}{norm}", WIDTH, around=1.0)
        _with_bias(file, f"{block}attn_qkv", 3 * WIDTH, WIDTH)
        _with_bias(file, f"{block}attn_output", WIDTH, WIDTH)
        _with_bias(file, f"{block}ffn_up", 4 * WIDTH, WIDTH)
        _with_bias(file, f"{block}ffn_down", WIDTH, 4 * WIDTH)
    return file.close()


def _with_bias(file: _File, name: str, *shape: int, around: float = 0.0) -> None:
    file.add(f"{name}.weight", *shape, around=around)
    file.add(f"{name}.bias", shape[0])
