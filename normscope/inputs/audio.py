"""Sizes -> sound: waves, spectrograms and their masks."""

from typing import Any

import torch
from torch import nn

from normscope.inputs.facts import Scope
from normscope.inputs.request import Request
from normscope.inputs.stems import first_width

SHORT = 200
"""Frames of a spectrogram that survive every stem's strides."""
SAMPLES = 15360
"""A second of sound, a multiple of the hops of the usual codecs."""


def mel_bins(request: Request) -> int:
    """Return the height of a spectrogram."""
    return request.facts.number(
        "num_mel_bins",
        "feature_size",
        "input_feat_per_channel",
        "n_mels",
        "num_mel_channels",
        "feature_projection_input_dim",
        "input_feat_size",
        "input_dim",
        "spectrogram_bins",
        "num_chroma",
        "input_size",
        scope=Scope.AUDIO,
        default=80,
    )


def input_features(request: Request) -> list[torch.Tensor]:
    """Spectrograms, bins first or frames first, of the longest length and of a short one."""
    bins, *others = bin_counts(request)
    if "input_values" in request.takes:  # two views of one sound, of one length
        frames = SAMPLES // request.facts.number("hop_length", default=320)
        return [torch.randn(request.sequences, frames, count) for count in (bins, *others)]
    if "feature_lens" in request.takes:  # packed: all sounds one after another
        return [torch.randn(count, SHORT * request.sequences) for count in (bins, *others)]
    longest = 2 * request.facts.number("max_source_positions", scope=Scope.AUDIO, default=0)
    lengths = [longest, SHORT] if 0 < longest <= 3000 else [SHORT, 3000]
    first = [torch.randn(request.sequences, bins, count) for count in lengths]
    last = [torch.randn(request.sequences, count, bins) for count in (SHORT, longest or 3000)]
    further = [torch.randn(request.sequences, SHORT, count) for count in others]
    options = [*first, *last] if 0 < longest <= 3000 else [*last, *first]
    four = torch.randn(request.sequences, 1, 1024, bins)
    return [*options, *further, four]


def bin_counts(request: Request) -> list[int]:
    """Return the heights that a spectrogram may have: by the config, and by the first weight."""
    stem = first_width(request.module, Scope.AUDIO, (nn.Linear, nn.Conv1d))
    return list(dict.fromkeys([mel_bins(request), *((stem,) if stem else ()), 128, 80]))


def features_mask(request: Request) -> list[torch.Tensor]:
    """Every frame counts; [sequences, frames]."""
    name = next((n for n in ("input_features", "audio_mel") if n in request.takes), None)
    if name is None:
        return []
    shape = request.value(name).shape
    frames = shape[2] if shape[1] in bin_counts(request) else shape[1]
    mask = torch.ones(request.sequences, frames, dtype=torch.int64)
    return [mask, mask.bool()]


def frames_first(request: Request) -> list[torch.Tensor]:
    """A spectrogram; [sequences, frames, bins]."""
    return [torch.randn(request.sequences, SHORT, mel_bins(request))]


def frame_padding(request: Request) -> list[torch.Tensor]:
    """No frame is padding; [sequences, frames], booleans."""
    return [torch.zeros(request.sequences, SHORT, dtype=torch.bool)]


def input_values(request: Request) -> list[torch.Tensor]:
    """Waves, with and without a channel axis, or a spectrogram."""
    count = request.sequences
    frames = request.facts.number("max_length", "num_frames", scope=Scope.AUDIO, default=1024)
    channels = request.facts.number("audio_channels", scope=Scope.AUDIO, default=1)
    waves = [torch.randn(count, SAMPLES), torch.randn(count, channels, SAMPLES)]
    spectrogram = torch.randn(count, frames, mel_bins(request))
    stream = torch.randn(count, 8, request.facts.number("hidden_size", "d_model", default=64))
    if request.facts.has("audio_channels"):
        waves.reverse()
    if request.facts.has("num_mel_bins", "n_mels") and not request.facts.has("conv_dim"):
        return [spectrogram, *waves, spectrogram[:, None], stream]
    return [*waves, spectrogram, spectrogram[:, None], stream]


def decoder_frames(request: Request) -> list[torch.Tensor]:
    """What a speech decoder has said so far; [sequences, frames, bins]."""
    width = request.facts.number("hidden_size", "d_model", default=64)
    return [torch.randn(request.sequences, 8, count) for count in (mel_bins(request), width)]


def samples_mask(request: Request) -> list[torch.Tensor]:
    """Every sample counts; of the shape of the waves, or without their channel axis."""
    if "input_values" not in request.takes:
        return features_mask(request)
    wave = torch.ones_like(request.value("input_values"), dtype=torch.int64)
    return [wave, wave[:, 0]] if wave.ndim > 2 else [wave]


def chunk_lengths(request: Request) -> list[torch.Tensor]:
    """How many frames of each chunk count; [chunks]."""
    frames = features_mask(request)[0].shape[1] if "input_features" in request.takes else SHORT
    return [torch.full((request.sequences,), frames, dtype=torch.int64)]


def feature_lengths(request: Request) -> list[torch.Tensor]:
    """How many frames of the packed spectrogram each sound has; [sounds]."""
    return [torch.full((request.sequences,), SHORT, dtype=torch.int64)]


AUDIO: dict[str, Any] = {
    "input_features": input_features,
    "input_features_mask": features_mask,
    "feature_attention_mask": features_mask,
    "padding_mask": samples_mask,
    "chunk_sample_lengths": chunk_lengths,
    "feature_lens": feature_lengths,
    "audio_mel": frames_first,
    "audio_mel_mask": frame_padding,
    "input_values": input_values,
    "decoder_input_values": decoder_frames,
}
