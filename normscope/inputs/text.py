"""Sizes -> token ids and what goes with them."""

from typing import Any

import torch

from normscope.inputs.facts import Scope
from normscope.inputs.request import PADDING, TOKENS, Request

CHOICES = 2
"""Answers to choose from, for heads of multiple choice."""


def input_ids(request: Request) -> list[torch.Tensor]:
    """Plain tokens after the placeholders of images and sound; [sequences, length].

    Else with an end behind each, in several codebooks, or as answers to choose from.
    """
    own = TOKENS + image_queries(request)
    length = own + sum(request.placeholders.values())
    ids = _plain_ids(request, own)
    front = [token for token, count in request.placeholders.items() for _ in range(count)]
    ids = torch.cat([torch.tensor(front, dtype=torch.int64).repeat(request.sequences, 1), ids], 1)
    padding = request.facts.first("pad_token_id")
    if isinstance(padding, int) and padding >= 0 and request.sequences > 1:
        ids[-1, length - PADDING :] = padding
    options = [ids, *_ended(request, ids)]
    channels = request.facts.number("num_codebooks", "num_code_groups", "n_codes_total", default=0)
    if channels:
        options.append(ids[..., None].repeat(1, 1, channels))
        options.append(ids[..., None].repeat(1, 1, channels + 1))
        options.append(ids.repeat(channels, 1))
    return [*options, ids[:, None].repeat(1, CHOICES, 1)]


def image_queries(request: Request) -> int:
    """Return how many features of an image a mask finds places for, where no token marks them."""
    if "image_embeds_position_mask" not in request.takes:
        return 0
    return request.facts.number("latent_query_num", default=0)


def _ended(request: Request, ids: torch.Tensor) -> list[torch.Tensor]:
    """Return the sequences with an end-of-sequence token behind each: some heads look for it."""
    end = request.facts.first("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    if not isinstance(end, int):
        return []
    ended = ids.clone()
    ended[:-1, -1] = end
    ended[-1, -1 if request.sequences == 1 else -PADDING - 1] = end
    return [ended]


def _are_choices(ids: torch.Tensor) -> bool:
    return ids.ndim > 2 and ids.shape[1] == CHOICES


def attention_mask(request: Request) -> list[torch.Tensor]:
    """Ones, and zeros where the second sequence is padded; [sequences, length], or as the ids."""
    if "input_ids" not in request.takes:
        return []
    ids = request.value("input_ids")
    shape = ids.shape if _are_choices(ids) else (request.sequences, ids.shape[1])
    mask = torch.ones(shape, dtype=torch.int64)
    if request.sequences > 1:
        mask[-1, ..., mask.shape[-1] - PADDING :] = 0
    return [mask]


def decoder_input_ids(request: Request) -> list[torch.Tensor]:
    """Tokens for the decoder; [sequences, length]."""
    ids = _plain_ids(request, TOKENS - 2)
    channels = request.facts.number("num_codebooks", default=0)
    return [ids, ids.repeat(channels, 1)] if channels else [ids]


def decoder_mask(request: Request) -> list[torch.Tensor]:
    """Every token of the decoder counts."""
    return [torch.ones_like(request.value("decoder_input_ids"))]


def zeros_like_ids(request: Request) -> list[torch.Tensor]:
    """Token types, languages and the like: all of the first kind."""
    return [torch.zeros_like(request.value("input_ids"))]


def patch_lengths(request: Request) -> list[torch.Tensor]:
    """Two patches of bytes in every sequence; [sequences, patches]."""
    half = request.value("input_ids").shape[1] // 2
    return [torch.full((request.sequences, 2), half, dtype=torch.int64)]


def languages(request: Request) -> list[torch.Tensor]:
    """The first language for every sequence."""
    return [torch.zeros(request.sequences, dtype=torch.int64)]


def modality_types(request: Request) -> list[torch.Tensor]:
    """0 for text, 1 for an image, 2 for a video or sound; [sequences, length]."""
    ids = request.value("input_ids")
    kinds = torch.zeros_like(ids)
    for token in request.placeholders:
        kinds[ids == token] = 2 if token == request.facts.first("video_token_id") else 1
    return [kinds]


def bbox(request: Request) -> list[torch.Tensor]:
    """Boxes on a page of 1000 by 1000; [sequences, length, 4]."""
    length = request.value("input_ids").shape[1]
    box = torch.tensor([10, 20, 110, 60], dtype=torch.int64)
    boxes = box.repeat(request.sequences, length, 1)
    return [boxes, boxes.float() / 1000]


def _plain_ids(request: Request, length: int) -> torch.Tensor:
    vocabulary = max(request.facts.number("vocab_size", scope=Scope.TEXT, default=32), 2)
    special = request.facts.special_ids() | set(request.placeholders)
    usable = [token for token in range(min(vocabulary, 400)) if token not in special] or [0]
    chosen = [usable[(7 + 5 * place) % len(usable)] for place in range(length * request.sequences)]
    return torch.tensor(chosen, dtype=torch.int64).view(request.sequences, length)


def plain_ids(request: Request) -> list[torch.Tensor]:
    """A second text without placeholders; [sequences, length]."""
    return [_plain_ids(request, TOKENS)]


def task(request: Request) -> list[torch.Tensor]:
    """The task as text, of the one length that its network takes; [sequences, length]."""
    return [_plain_ids(request, request.facts.number("task_seq_len", default=TOKENS))]


def plain_mask(request: Request) -> list[torch.Tensor]:
    """Every token of the second text counts."""
    return [torch.ones(request.sequences, TOKENS, dtype=torch.int64)]


TEXT: dict[str, Any] = {
    "input_ids": input_ids,
    "attention_mask": attention_mask,
    "decoder_input_ids": decoder_input_ids,
    "token_type_ids": zeros_like_ids,
    "mm_token_type_ids": modality_types,
    "lang_ids": languages,
    "bbox": bbox,
    "patch_lengths": patch_lengths,
    "decoder_attention_mask": decoder_mask,
    "qformer_input_ids": plain_ids,
    "qformer_attention_mask": plain_mask,
    "protein_input_ids": plain_ids,
    "protein_attention_mask": plain_mask,
    "classes_input_ids": plain_ids,
    "classes_attention_mask": plain_mask,
    "tasks_input_ids": plain_ids,
    "tasks_attention_mask": plain_mask,
    "task_inputs": task,
    "text_inputs": plain_ids,
}
