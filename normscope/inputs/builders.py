"""Every input that can be made, by the name that forward() gives it."""

from collections.abc import Mapping

from normscope.inputs.audio import AUDIO
from normscope.inputs.others import OTHERS
from normscope.inputs.recipes import RECIPES
from normscope.inputs.request import Builder
from normscope.inputs.text import TEXT
from normscope.inputs.vision import VISION

BUILDERS: Mapping[str, Builder] = {**TEXT, **VISION, **AUDIO, **OTHERS, **RECIPES}

ON_DEMAND = frozenset(
    {
        "token_type_ids",
        "bbox",
        "attention_mask",
        "decoder_attention_mask",
        "mask",
        "speaker_id",
        "query_embeds",
        "audio_codes",
        "lang_ids",
        "static_categorical_features",
        "static_real_features",
        "patch_lengths",
        "encoder_hidden_states",
        "visual_embeds",
        "merge_sizes",
        "latents",
        "hidden_states",
        "input_features_mask",
        "pixel_mask",
        "pixel_values_videos",
        "video_grid_thw",
        "patch_attention_mask",
        "past_values_padding",
        "visual_attention_mask",
        "image_sizes",
        "decoder_input_values",
        "labels",
        "t_cond",
        "codebook_pixel_values",
        "bool_masked_pos",
    }
)
"""Given where forward() needs them or a failure asks for them."""

HANDED_ON = ("t_cond",)
"""Given on demand to a forward that takes any name, where a module inside it takes this one."""

STAND_INS: Mapping[str, str] = {"inputs_embeds": "input_ids"}
"""Given only where forward() needs them or a failure names them, and then without the other."""

GIVEN = frozenset(BUILDERS) - ON_DEMAND - set(STAND_INS)
"""Given wherever forward() takes them."""

PROMPT = ("input_ids", "attention_mask", "mm_token_type_ids", "decoder_input_ids")
"""What a text alone is made of."""
