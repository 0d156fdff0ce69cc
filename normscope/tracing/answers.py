"""Plausible answers to what the code asks of values that were never computed.

A model on `meta` has no weights, so a value that depends on one has a shape and no content. Where
the code reads such content all the same, it gets the answer that keeps the usual path alive, and
every answer is recorded as an assumption.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from normscope.tracing.questions import Asked

aten = torch.ops.aten

Answer = tuple[Any, str]
"""The result in place of the operation's own, and how the report words it; "" for a known one."""

MOST_PLACES = 16
"""How many true elements a search finds: code loops over them (experts that got tokens)."""

LARGEST_REAL = 1 << 22
"""Elements up to which a value is computed for real instead of staying on `meta`."""


def _scalar(tensor: torch.Tensor, asked: Asked) -> Answer:
    if tensor.dtype is torch.bool:
        # `if mask.all():` takes the shortcut, `if isnan(x).any():` does not.
        value: Any = not asked.none_true and asked.operation in {
            "all",
            "_is_all_true",
            "eq",
            "equal",
        }
    elif tensor.is_complex():
        value = 1j
    elif tensor.is_floating_point():
        value = 1.0
    else:
        value = asked.count or 1
    return value, repr(value)


def _every_index(shape: torch.Size) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool).nonzero()


def _nonzero(tensor: torch.Tensor, asked: Asked) -> Answer:
    places = _every_index(tensor.shape)
    if asked.chosen_among is not None and tensor.ndim == 1:
        places = places[: asked.chosen_among]
    if len(places) <= MOST_PLACES:
        return places, "every element"
    # Spread over the whole: the first ones, or one column, may be a border that the code cuts off.
    number, step = torch.arange(MOST_PLACES), len(places) // MOST_PLACES
    return places[number * step + number * 7919 % step], f"{MOST_PLACES} elements, spread"


def _masked_select(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    tensor, mask = args
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    count = shape.numel() if mask.is_meta else int(mask.expand(shape).sum())
    return tensor.new_empty((count,), device="meta"), "every element" if mask.is_meta else ""


def _index(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    tensor, indices = args
    return aten.index.Tensor(tensor.to("meta"), _without_masks(indices)), _mask_wording(indices)


def _mask_wording(indices: list[Any]) -> str:
    asked = any(_is_mask(index) and index.is_meta for index in indices)
    return "a mask that is true everywhere" if asked else ""


def _is_mask(index: torch.Tensor | None) -> bool:
    return index is not None and index.dtype in {torch.bool, torch.uint8}


def _without_masks(indices: list[Any]) -> list[Any]:
    """Replace each boolean mask by the integer indices of all its elements."""
    plain: list[Any] = []
    for index in indices:
        if index is not None and _is_mask(index):
            where = _every_index(index.shape) if index.is_meta else index.nonzero()
            plain.extend(column.to("meta") for column in where.unbind(-1))
        else:
            plain.append(index)
    return plain


def _index_put(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return args[0], _mask_wording(args[1])


def _index_put_copy(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return torch.empty_like(args[0]), _mask_wording(args[1])


def _unique(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    tensor = args[0]
    flat = tensor.new_empty((tensor.numel(),), device="meta")
    index = torch.empty(tensor.shape, dtype=torch.int64, device="meta")
    counts = torch.empty((tensor.numel(),), dtype=torch.int64, device="meta")
    return (flat, index, counts), "all values differ"


def _repeat_interleave(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    repeats = args[0]
    size = kwargs.get("output_size") or repeats.numel()
    return torch.empty((size,), dtype=torch.int64, device="meta"), "each element once"


def _bincount(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    size = max(kwargs.get("minlength", args[2] if len(args) > 2 else 0), 1)
    return torch.empty((size,), dtype=torch.int64, device="meta"), f"{size} bins"


def _split(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer | None:
    """Make sizes that came from such answers add up: the last part takes the rest."""
    tensor, sizes = args[:2]
    axis = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    rest = tensor.shape[axis] - sum(sizes)
    if set(sizes) != {1} or rest <= 0:
        return None
    fitting = [*sizes[:-1], sizes[-1] + rest]
    return aten.split_with_sizes.default(tensor, fitting, axis), "the last part takes the rest"


def _equal(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return True, "True"


_ANSWERS: dict[OpOverload, Callable[[tuple[Any, ...], dict[str, Any]], Answer | None]] = {
    aten.masked_select.default: _masked_select,
    aten.index_put_.default: _index_put,
    aten.index_put.default: _index_put_copy,
    aten._unique2.default: _unique,
    aten.unique_dim.default: _unique,
    aten.unique_consecutive.default: _unique,
    aten.repeat_interleave.Tensor: _repeat_interleave,
    aten.bincount.default: _bincount,
    aten.equal.default: _equal,
    aten.split_with_sizes.default: _split,
}


def answer_for(
    overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Asked
) -> Answer | None:
    """Return the answer for an operation on `meta` that reads content, else None."""
    if overload is aten._local_scalar_dense.default:
        return _scalar(args[0], asked)
    if overload is aten.nonzero.default:
        return _nonzero(args[0], asked)
    if overload is aten.index.Tensor:
        return _index(args, kwargs) if any(map(_is_mask, args[1])) else None
    rule = _ANSWERS.get(overload)
    if rule is None:
        return None
    if overload in {aten.index_put_.default, aten.index_put.default} and not any(
        map(_is_mask, args[1])
    ):
        return None
    return rule(args, kwargs)
