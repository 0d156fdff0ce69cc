"""A small model -> the GGUF file that llama.cpp's converter would make of it."""

from pathlib import Path

import gguf
import torch
import transformers

from specimens.gguf_files import TOKENS

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}
LLAMA = NAMES | {"post_attention_layernorm": "ffn_norm"}
GEMMA = NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}

SHAPE = {
    "vocab_size": len(TOKENS),
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}


def small_llama() -> transformers.PreTrainedModel:
    """Return a Llama whose gains differ from one another."""
    return _with_gains(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)), 1.0)


def small_gemma() -> transformers.PreTrainedModel:
    """Return a Gemma 3, whose norms multiply by 1 + w."""
    config = transformers.Gemma3TextConfig(**SHAPE)
    return _with_gains(transformers.Gemma3ForCausalLM(config), 0.0)


def _with_gains(model: transformers.PreTrainedModel, centre: float) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() == 1:
                value.normal_(centre, 0.1)
    return model


def write_gguf(path: Path, model: transformers.PreTrainedModel, *, eps: float = 1e-5) -> None:
    """Write the model's tensors in float32, those of Gemma's norms with 1 added."""
    gemma = model.config.model_type.startswith("gemma3")
    writer = gguf.GGUFWriter(path, "gemma3" if gemma else "llama")
    config = model.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(eps)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    for name, value in model.state_dict().items():
        is_offset = gemma and value.dim() == 1
        stored = value.float() + 1 if is_offset else value.float()
        writer.add_tensor(_renamed(name, GEMMA if gemma else LLAMA), stored.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _renamed(name: str, names: dict[str, str]) -> str:
    for ours, theirs in names.items():
        name = name.replace(f"{ours}.", f"{theirs}.")
    return name
