"""Fields that a default config of transformers leaves out and its forward cannot do without.

Only for `type:` targets, and only where the model builds and then fails on its own config: a
checkpoint's config has these fields. The values are those of the first released checkpoint.
"""

from collections.abc import Mapping
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
}


def fill_in(config: PretrainedConfig) -> tuple[str, ...]:
    """Set the missing fields in a default config and say which."""
    said: list[str] = []
    for part in configs_in(config):
        for name, value in _MISSING.get(part.model_type, {}).items():
            setattr(part, name, value)
            said.append(f"{part.model_type} has no usable default {name}; {value} was assumed")
    return tuple(said)
