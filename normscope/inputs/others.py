"""Sizes -> series, states, latents and streams: what is neither text, image nor sound."""

from typing import Any

import torch

from normscope.inputs.facts import Scope
from normscope.inputs.request import TOKENS, Request

CONTEXT = 256


def past_values(request: Request) -> list[torch.Tensor]:
    """A history; [sequences, time, channels], or [sequences, time] for a single one."""
    length = request.facts.number("context_length", default=CONTEXT)
    channels = request.facts.number("num_input_channels", "input_size", default=0)
    lags = request.facts.first("lags_sequence") or [0]
    longer = torch.randn(request.sequences, length + max(lags))
    single = longer[:, :length]
    several = single[..., None].repeat(1, 1, max(channels, 1))
    options = [several, single] if channels else [single, several]
    if max(lags):
        options = [longer[..., None].repeat(1, 1, channels) if channels > 1 else longer, *options]
    return options


def like_past_values(value: float) -> Any:
    """Return a builder of a mask over the history."""

    def build(request: Request) -> list[torch.Tensor]:
        return [torch.full_like(request.value("past_values"), value)]

    return build


def time_features(name: str) -> Any:
    """Return a builder of what is known of each step: the day, the hour."""

    def build(request: Request) -> list[torch.Tensor]:
        count = request.facts.number("num_time_features", default=0) or 1
        length = (
            request.value("past_values").shape[1]
            if name == "past"
            else request.facts.number("prediction_length", default=TOKENS)
        )
        return [torch.randn(request.sequences, length, count)]

    return build


def future_values(request: Request) -> list[torch.Tensor]:
    """What follows the history; [sequences, time] or [sequences, time, channels]."""
    length = request.facts.number("prediction_length", default=TOKENS)
    past = request.value("past_values")
    return [torch.randn(request.sequences, length, *past.shape[2:])]


def static_categories(request: Request) -> list[torch.Tensor]:
    """What is fixed about each series, as numbers of kinds; [sequences, features]."""
    count = request.facts.number("num_static_categorical_features", default=1)
    return [torch.zeros(request.sequences, count, dtype=torch.int64)]


def static_reals(request: Request) -> list[torch.Tensor]:
    """What is fixed about each series, as amounts; [sequences, features]."""
    count = request.facts.number("num_static_real_features", default=1)
    return [torch.randn(request.sequences, count)]


def steps(width_name: str, default: int) -> Any:
    """Return a builder of one vector for each step of an episode."""

    def build(request: Request) -> list[torch.Tensor]:
        width = request.facts.number(width_name, default=default) if width_name else default
        return [torch.randn(request.sequences, TOKENS, width)]

    return build


def timesteps(request: Request) -> list[torch.Tensor]:
    """The number of each step; [sequences, steps]."""
    return [torch.arange(TOKENS).repeat(request.sequences, 1)]


def per_sequence(request: Request) -> list[torch.Tensor]:
    """One number for each sequence, a zero."""
    return [torch.zeros(request.sequences, 1, dtype=torch.int64)]


def stream(request: Request) -> list[torch.Tensor]:
    """Vectors of the model's width in place of tokens; [sequences, length, width]."""
    width = request.facts.number("hidden_size", "d_model", "embed_dim", default=64)
    return [torch.randn(request.sequences, TOKENS, width)]


def actions_so_far(request: Request) -> list[torch.Tensor]:
    """Embedded actions of a robot's policy; [sequences, length, width]."""
    width = getattr(request.facts.first("dit_config"), "hidden_size", 64)
    return [torch.randn(request.sequences, TOKENS, width)]


def every_step(request: Request) -> list[torch.Tensor]:
    """Every step counts; [sequences, length]."""
    return [torch.ones(request.sequences, TOKENS, dtype=torch.bool)]


def queries(request: Request) -> list[torch.Tensor]:
    """Learned queries as a Q-Former gets them; [sequences, queries, width]."""
    count = request.facts.number("num_query_tokens", default=32)
    width = request.facts.number("hidden_size", default=64)
    return [torch.randn(request.sequences, count, width)]


def latents(request: Request) -> list[torch.Tensor]:
    """What a codec's encoder makes, channels first or last."""
    width = request.facts.number("hidden_size", "latent_dim", default=64)
    first = torch.randn(request.sequences, width, TOKENS)
    return [first, first.transpose(1, 2)]


def contexts(request: Request) -> list[torch.Tensor]:
    """States of several layers of another model side by side."""
    width = request.facts.number("hidden_size", default=64)
    layers = request.facts.first("target_layer_ids") or [0]
    return [torch.randn(request.sequences, TOKENS, width * len(layers))]


def codes(request: Request) -> list[torch.Tensor]:
    """Codes of a codec; [sequences, codebooks, length]."""
    books = request.facts.number("num_codebooks", "num_quantizers", default=8)
    return [torch.zeros(request.sequences, books, TOKENS, dtype=torch.int64)]


def sound_codes(request: Request) -> list[torch.Tensor]:
    """Codes of sound, codebooks last; [sequences, length, codebooks]."""
    books = request.facts.number("num_codebooks", scope=Scope.AUDIO, default=8)
    return [torch.zeros(request.sequences, TOKENS, books, dtype=torch.int64)]


def condition(request: Request) -> list[torch.Tensor]:
    """One vector that conditions every block: the embedded time; [1, 1, width]."""
    return [torch.randn(1, 1, request.facts.number("hidden_size", default=64))]


OTHERS: dict[str, Any] = {
    "past_values": past_values,
    "past_values_padding": like_past_values(0.0),
    "past_observed_mask": like_past_values(1.0),
    "past_time_features": time_features("past"),
    "future_time_features": time_features("future"),
    "static_categorical_features": static_categories,
    "static_real_features": static_reals,
    "future_values": future_values,
    "freq": per_sequence,
    "spkr_id": per_sequence,
    "speaker_id": per_sequence,
    "lang_id": per_sequence,
    "states": steps("state_dim", 17),
    "actions": steps("act_dim", 4),
    "rewards": steps("", 1),
    "returns_to_go": steps("", 1),
    "timesteps": timesteps,
    "inputs": stream,
    "inputs_embeds": stream,
    "noise_embeds": stream,
    "t_cond": condition,
    "action_embeds": actions_so_far,
    "mask": every_step,
    "context_hidden_states": contexts,
    "query_embeds": queries,
    "latents": latents,
    "audio_codes": codes,
    "audio_input_ids": sound_codes,
}
