"""texts or token ids -> batches of inputs for a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from normscope.activations.streams import Inputs
from normscope.activations.tokens import Labeller, unlabelled
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inputs.signature import signature_of

_UNLIMITED = 10**9
"""transformers writes a larger number where a tokenizer knows no limit."""
_RESERVED = 8
"""Positions that a table may hold beyond those of tokens (RoBERTa: two)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequences:
    """Token ids, one tuple a sequence, and what was cut off."""

    ids: tuple[tuple[int, ...], ...]
    cut: int = 0
    """How many sequences were longer than `--max-length`."""


def encode_texts(
    tokenizer: Any, texts: Sequence[str], *, max_length: int | None = None
) -> Sequences:
    """Return the token ids of each text, with the tokenizer's own special tokens.

    Raises `UsageError` for a text without any token.
    """
    encoded: list[tuple[int, ...]] = []
    cut = 0
    for number, text in enumerate(texts, start=1):
        ids = tokenizer(text, truncation=False, verbose=False)["input_ids"] if text.strip() else []
        if not ids:
            raise UsageError(f"input {number} is empty", "give some text")
        if max_length is not None and len(ids) > max_length:
            cut += 1
            # The tokenizer cuts the text and keeps its special tokens at the end.
            ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
        encoded.append(tuple(ids))
    return Sequences(ids=tuple(encoded), cut=cut)


def cut_ids(sequences: Sequence[Sequence[int]], max_length: int | None) -> Sequences:
    """Return token ids that were given as they are, cut to `max_length`."""
    if any(not ids for ids in sequences):
        raise UsageError("there are no token ids in an --input-ids", "write them like 101,2023,102")
    return Sequences(
        ids=tuple(tuple(ids[:max_length]) for ids in sequences),
        cut=sum(max_length is not None and len(ids) > max_length for ids in sequences),
    )


def longest_input(config: Any, tokenizer: Any) -> int | None:
    """Return how many positions the model has, or None where nothing limits it."""
    found = getattr(config, "max_position_embeddings", None)
    if not isinstance(found, int) or found <= 0:
        return None
    known = getattr(tokenizer, "model_max_length", None)
    if isinstance(known, int) and known < _UNLIMITED and 0 < found - known <= _RESERVED:
        return known
    return found


def check_sequences(sequences: Sequences, *, limit: int | None, vocabulary: int | None) -> None:
    """Raise `UsageError` for a sequence that is too long or has an id outside the vocabulary."""
    for number, ids in enumerate(sequences.ids, start=1):
        if limit is not None and len(ids) > limit:
            raise UsageError(
                f"input {number} has {len(ids)} tokens, and the model has {limit} positions",
                f"cut it with --max-length {limit}",
            )
        wrong = next((item for item in ids if vocabulary and not 0 <= item < vocabulary), None)
        if wrong is not None:
            raise UsageError(
                f"input {number} has the token id {wrong}, and the vocabulary has "
                f"{vocabulary} entries"
            )


def vocabulary_of(module: nn.Module) -> int | None:
    """Return how many token ids the model knows, or None where it does not say."""
    find = getattr(module, "get_input_embeddings", None)
    try:
        embeddings = find() if callable(find) else None
    except NotImplementedError:
        return None
    found = getattr(embeddings, "num_embeddings", None)
    return found if isinstance(found, int) else None


def labeller(tokenizer: Any) -> Labeller:
    """Return what tells the text of a token id, and whether it is special."""
    if tokenizer is None:
        return unlabelled
    special = frozenset(tokenizer.all_special_ids)
    known: dict[int, tuple[str | None, bool]] = {}

    def label(number: int) -> tuple[str | None, bool]:
        if number not in known:
            known[number] = (_token_text(tokenizer, number), number in special)
        return known[number]

    return label


def _token_text(tokenizer: Any, number: int) -> str | None:
    """Return the text of a token; its name in the vocabulary where it is part of a character."""
    text = tokenizer.decode([number])
    if isinstance(text, str) and text and "\ufffd" not in text:
        return text
    named = tokenizer.convert_ids_to_tokens(number)
    return named if isinstance(named, str) else None


# Batches.


def batches_of(
    module: nn.Module, config: Any, sequences: Sequences, *, batch_size: int, device: str = "cpu"
) -> Iterator[Inputs]:
    """Yield the sequences as inputs, in their order, padded on the right.

    Right padding is masked, and no causal model sees it. Sequences of different lengths are kept
    apart where the model takes no mask. Raises `NormscopeError` where it takes no token ids.
    """
    names = signature_of(module.forward)
    if "input_ids" not in names and isinstance(getattr(module, "main_input_name", None), str):
        raise NormscopeError(
            FailureKind.NO_INPUTS,
            f"{type(module).__qualname__} takes {module.main_input_name}, not tokens",
            "measure it from Python: normscope.measure_activations(module, inputs)",
        )
    masked = "attention_mask" in names
    for rows in _grouped(sequences.ids, batch_size, equal=not masked):
        ids, mask = _padded(rows, _padding_id(config), device)
        if "input_ids" not in names:
            yield Inputs(keywords={}, positional=(ids,), mask=mask)
            continue
        keywords: dict[str, Any] = {"input_ids": ids}
        if masked:
            keywords["attention_mask"] = mask
        if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
            keywords["decoder_input_ids"] = _shifted(ids, config)
            if "decoder_attention_mask" in names:
                keywords["decoder_attention_mask"] = mask
        yield Inputs(keywords=keywords, mask=mask)


def _grouped(
    sequences: Sequence[tuple[int, ...]], batch_size: int, *, equal: bool
) -> Iterator[list[tuple[int, ...]]]:
    group: list[tuple[int, ...]] = []
    for ids in sequences:
        if group and (len(group) >= batch_size or (equal and len(ids) != len(group[0]))):
            yield group
            group = []
        group.append(ids)
    if group:
        yield group


def _padding_id(config: Any) -> int:
    found = getattr(config, "pad_token_id", None)
    return found if isinstance(found, int) and found >= 0 else 0


def _padded(
    rows: Sequence[tuple[int, ...]], padding: int, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), padding, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        mask[index, : len(row)] = 1
    return ids.to(device), mask.to(device)


def _shifted(ids: torch.Tensor, config: Any) -> torch.Tensor:
    """The decoder reads the same text, one place later, behind its start token."""
    candidates = (getattr(config, f"{name}_token_id", None) for name in _STARTS)
    start = next((item for item in candidates if isinstance(item, int) and item >= 0), 0)
    first = torch.full_like(ids[:, :1], start)
    return torch.cat([first, ids[:, :-1]], dim=1)


_STARTS = ("decoder_start", "bos", "pad")
