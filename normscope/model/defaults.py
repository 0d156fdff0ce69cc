"""Fields in which a default config of transformers is not whole, and what they are filled with.

Only for `type:` targets, and only where the model builds and then fails on its own config, or
cannot join its parts: a checkpoint's config has these fields. The values are those of the first
released checkpoint, as far as the other defaults let them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from transformers import PretrainedConfig

from normscope.model.configs import configs_in

_HALF_ROTARY = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "mrope_section": [8, 12, 12],
}

_MISSING: Mapping[str, Mapping[str, Any]] = {
    # The router takes the top None of its experts.
    "deepseek_v2": {"num_experts_per_tok": 6},
    # The sections of the rotary embedding cover half a head, and nothing says so.
    "glm4v_text": {"rope_parameters": _HALF_ROTARY},
    "glm4v_moe_text": {"rope_parameters": _HALF_ROTARY, "head_dim": 128},
    "glm_image_text": {"rope_parameters": _HALF_ROTARY},
    # 2048 values do not divide into 28 heads of an even width.
    "qwen3_omni_moe_text": {"head_dim": 128},
    # The model makes the masks of both kinds of attention, whichever kind its layers have.
    "step3p5": {"sliding_window": 512},
    # 256 tokens an image are pooled from more patches than an image of 224 pixels has.
    "gemma3": {"vision_config.image_size": 896, "vision_config.patch_size": 14},
    "t5gemma2_encoder": {"vision_config.image_size": 896, "vision_config.patch_size": 14},
    # The patches of an image of 224 pixels cannot be merged four by four.
    "modernvbert": {"vision_config.image_size": 512},
    "ultravbert": {"vision_config.image_size": 512},
    # The features of the tower are not as wide as what reads them.
    "qwen2_vl": {"vision_config.hidden_size": 8192},
    "qwen3_asr": {"audio_config.output_dim": 2048},
    "qwen3_omni_moe_thinker": {"audio_config.output_dim": 2048},
    "janus": {"vision_config.projection_dim": 4096},
    "granite_speech": {"projector_config.encoder_hidden_size": 1024},
    "granite_speech_plus": {"projector_config.encoder_hidden_size": 1024},
    "ovis2": {"hidden_size": 4096},
    "llama4": {"vision_config.intermediate_size": 3072, "vision_config.vision_output_dim": 4096},
    # No level of the backbone is projected.
    "lw_detr": {
        "projector_scale_factors": [1.0],
        "projector_in_channels": [256],
        "num_feature_levels": 1,
    },
}


def fill_in(config: PretrainedConfig) -> tuple[str, ...]:
    """Set the missing fields in a default config and say which."""
    said: list[str] = []
    for part in configs_in(config):
        for path, value in (*_MISSING.get(part.model_type, {}).items(), *_joints(part)):
            holder, _, name = path.rpartition(".")
            setattr(getattr(part, holder) if holder else part, name, value)
            said.append(f"{part.model_type} has no usable default {path}; {value} was assumed")
    return tuple(said)


def _joints(config: PretrainedConfig) -> Iterator[tuple[str, Any]]:
    """Yield what joins towers to the text that their features stand in, where it does not fit."""
    text = getattr(config, "text_config", None)
    wanted = getattr(text, "hidden_size", None)
    for name, part in vars(config).items():
        width = getattr(part, "out_hidden_size", None)
        if isinstance(part, PretrainedConfig) and None not in {wanted, width} and width != wanted:
            yield f"{name}.out_hidden_size", wanted
    words = getattr(text, "vocab_size", None)
    absent = [name for name in _PLACEHOLDERS if vars(config).get(name, 0) is None]
    if isinstance(words, int):
        yield from ((name, words - 1 - number) for number, name in enumerate(absent))


_PLACEHOLDERS = (
    "image_token_id",
    "image_token_index",
    "video_token_id",
    "video_token_index",
    "audio_token_id",
    "audio_token_index",
)
"""transformers' names for the tokens that features take the place of."""
