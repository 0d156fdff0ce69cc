"""sequences of token ids -> batches of inputs for a model, of about equal length each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from normscope.activations.streams import Inputs
from normscope.errors import FailureKind, NormscopeError
from normscope.inputs.signature import Signature, signature_of

_WINDOW = 4096
"""Tokens that are sorted by length, and whose rows wait for one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much runs together; a sequence that is larger runs alone."""

    sequences: int | None = None
    tokens: int | None = None
    """With the padding."""

    @classmethod
    def usual(cls) -> "Budget":
        """Return what a CPU is busy with and most memories hold."""
        return cls(tokens=1024)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """One sequence and its place in the input."""

    number: int
    ids: tuple[int, ...]


def batches_of(
    module: nn.Module,
    config: Any,
    sequences: Iterable[tuple[int, ...]],
    *,
    budget: Budget,
    device: str = "cpu",
) -> Iterator[Inputs]:
    """Yield the sequences as inputs, padded on the right, the longest of each window first.

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
    equal = "attention_mask" not in names
    for window in _windows(sequences, budget):
        batches = list(_grouped(window, budget, equal=equal))
        for place, batch in enumerate(batches, start=1):
            yield _inputs(batch, names, config, device, completes=place == len(batches))


def _windows(sequences: Iterable[tuple[int, ...]], budget: Budget) -> Iterator[list[_Numbered]]:
    """Yield consecutive sequences, at least as many as may run together."""
    tokens, least = max(_WINDOW, budget.tokens or 0), budget.sequences or 1
    window: list[_Numbered] = []
    size = 0
    for number, ids in enumerate(sequences):
        if len(window) >= least and size + len(ids) > tokens:
            yield window
            window, size = [], 0
        window.append(_Numbered(number, ids))
        size += len(ids)
    if window:
        yield window


def _grouped(
    window: Sequence[_Numbered], budget: Budget, *, equal: bool
) -> Iterator[list[_Numbered]]:
    """Yield the sequences of a window by length; the first of a group is its longest."""
    group: list[_Numbered] = []
    for item in sorted(window, key=lambda item: -len(item.ids)):
        if group and not _has_room(group, item, budget, equal=equal):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _has_room(group: Sequence[_Numbered], item: _Numbered, budget: Budget, *, equal: bool) -> bool:
    longest = len(group[0].ids)
    return (
        (budget.sequences is None or len(group) < budget.sequences)
        and (budget.tokens is None or (len(group) + 1) * longest <= budget.tokens)
        and not (equal and len(item.ids) != longest)
    )


def _inputs(
    batch: Sequence[_Numbered], names: Signature, config: Any, device: str, *, completes: bool
) -> Inputs:
    numbers = tuple(item.number for item in batch)
    ids, mask = _padded([item.ids for item in batch], _padding_id(config), device)
    if "input_ids" not in names:
        return Inputs(
            keywords={}, positional=(ids,), mask=mask, numbers=numbers, completes=completes
        )
    keywords: dict[str, Any] = {"input_ids": ids}
    if "attention_mask" in names:
        keywords["attention_mask"] = mask
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        keywords["decoder_input_ids"] = _shifted(ids, config)
        if "decoder_attention_mask" in names:
            keywords["decoder_attention_mask"] = mask
    return Inputs(keywords=keywords, mask=mask, numbers=numbers, completes=completes)


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
