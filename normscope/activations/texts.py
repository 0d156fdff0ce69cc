"""texts -> sequences of token ids, one after the other, each fit for the model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from normscope.activations.tokens import Labeller
from normscope.errors import UsageError

_UNLIMITED = 10**9
"""transformers writes a larger number where a tokenizer knows no limit."""
_RESERVED = 8
"""Positions that a table may hold beyond those of tokens (RoBERTa: two)."""


@dataclass(slots=True, kw_only=True)
class Cuts:
    """How many sequences were longer than `--max-length`, so far."""

    count: int = 0


def encode_texts(
    tokenizer: Any, texts: Iterable[str], *, max_length: int | None = None, cuts: Cuts | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield the token ids of each text, with the tokenizer's own special tokens.

    Raises `UsageError` for a text without any token, or with half of a character.
    """
    cuts = cuts or Cuts()
    for number, text in enumerate(texts, start=1):
        _check_whole(text, number)
        ids = tokenizer(text, truncation=False, verbose=False)["input_ids"] if text.strip() else []
        if not ids:
            raise UsageError(f"input {number} is empty", "give some text")
        if max_length is not None and len(ids) > max_length:
            cuts.count += 1
            # The tokenizer cuts the text and keeps its special tokens at the end.
            ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
        yield tuple(ids)


def _check_whole(text: str, number: int) -> None:
    """A byte that is no UTF-8 has become a lone surrogate on the way here; JSON may hold one."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"input {number} is no text: it has half of a character at {error.start}",
            "write it in UTF-8",
        ) from error


def cut_ids(
    sequences: Iterable[Sequence[int]], *, max_length: int | None, cuts: Cuts
) -> Iterator[tuple[int, ...]]:
    """Yield token ids that were given as they are, cut to `max_length`."""
    for ids in sequences:
        if not ids:
            raise UsageError(
                "there are no token ids in an --input-ids", "write them like 101,2023,102"
            )
        cuts.count += max_length is not None and len(ids) > max_length
        yield tuple(ids[:max_length])


def longest_input(config: Any, tokenizer: Any) -> int | None:
    """Return how many positions the model has, or None where nothing limits it."""
    found = getattr(config, "max_position_embeddings", None)
    if not isinstance(found, int) or found <= 0:
        return None
    known = getattr(tokenizer, "model_max_length", None)
    if isinstance(known, int) and known < _UNLIMITED and 0 < found - known <= _RESERVED:
        return known
    return found


def checked(
    sequences: Iterable[tuple[int, ...]], *, limit: int | None, vocabulary: int | None
) -> Iterator[tuple[int, ...]]:
    """Yield the sequences.

    Raises `UsageError` for one that is too long or has an id outside the vocabulary.
    """
    for number, ids in enumerate(sequences, start=1):
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
        yield ids


def vocabulary_of(module: nn.Module) -> int | None:
    """Return how many token ids the model knows, or None where it does not say."""
    find = getattr(module, "get_input_embeddings", None)
    try:
        embeddings = find() if callable(find) else None
    except NotImplementedError:
        return None
    found = getattr(embeddings, "num_embeddings", None)
    return found if isinstance(found, int) else None


def labeller(tokenizer: Any, config: Any = None) -> Labeller:
    """Return what tells the text of a token id, and whether it is special.

    Without a tokenizer the ids that the config names as special are.
    """
    special = frozenset(_special_ids(config) if tokenizer is None else tokenizer.all_special_ids)
    known: dict[int, tuple[str | None, bool]] = {}

    def label(number: int) -> tuple[str | None, bool]:
        if number not in known:
            text = None if tokenizer is None else _token_text(tokenizer, number)
            known[number] = (text, number in special)
        return known[number]

    return label


def _special_ids(config: Any) -> Iterator[int]:
    """`eos_token_id` may be a list of them."""
    for name in _SPECIAL:
        found = getattr(config, f"{name}_token_id", None)
        yield from (item for item in _as_list(found) if isinstance(item, int))


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


_SPECIAL = ("bos", "eos", "pad", "cls", "sep", "mask", "unk", "decoder_start")


def _token_text(tokenizer: Any, number: int) -> str | None:
    """Return the text of a token; its name in the vocabulary where it is part of a character."""
    text = tokenizer.decode([number])
    if isinstance(text, str) and text and "\ufffd" not in text:
        return text
    named = tokenizer.convert_ids_to_tokens(number)
    return named if isinstance(named, str) else None
