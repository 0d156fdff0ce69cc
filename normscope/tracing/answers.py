"""Plausible answers to what the code asks of values that were never computed.

A model on `meta` has no weights, so a value that depends on one has a shape and no content. Where
the code reads such content all the same, it gets the answer that keeps the usual path alive, and
every answer is recorded as an assumption.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

Answer = tuple[Any, str]
"""The result in place of the operation's own, and how the report words it."""

LARGEST_REAL = 1 << 22
"""Elements up to which a value is computed for real instead of staying on `meta`."""


def _scalar(tensor: torch.Tensor, operation: str) -> Answer:
    if tensor.dtype is torch.bool:
        # `if mask.all():` takes the shortcut, `if isnan(x).any():` does not.
        value: Any = operation in {"all", "eq", "equal"}
    elif tensor.is_complex():
        value = 1j
    else:
        value = 1.0 if tensor.is_floating_point() else 1
    return value, repr(value)


def _every_index(shape: torch.Size) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool).nonzero()


def _nonzero(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return _every_index(args[0].shape), "every element"


def _masked_select(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
    return args[0].new_empty((shape.numel(),), device="meta"), "every element"


def _index(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    tensor, indices = args
    return aten.index.Tensor(tensor, _without_masks(indices)), "a mask that is true everywhere"


def _without_masks(indices: list[Any]) -> list[Any]:
    """Replace each boolean mask by the integer indices of all its elements."""
    plain: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in {torch.bool, torch.uint8}:
            plain.extend(column.to("meta") for column in _every_index(index.shape).unbind(-1))
        else:
            plain.append(index)
    return plain


def _index_put(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return args[0], "a mask that is true everywhere"


def _index_put_copy(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return torch.empty_like(args[0]), "a mask that is true everywhere"


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


def _equal(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Answer:
    return True, "True"


_ANSWERS: dict[OpOverload, Callable[[tuple[Any, ...], dict[str, Any]], Answer]] = {
    aten.nonzero.default: _nonzero,
    aten.masked_select.default: _masked_select,
    aten.index_put_.default: _index_put,
    aten.index_put.default: _index_put_copy,
    aten._unique2.default: _unique,
    aten.unique_dim.default: _unique,
    aten.unique_consecutive.default: _unique,
    aten.repeat_interleave.Tensor: _repeat_interleave,
    aten.bincount.default: _bincount,
    aten.equal.default: _equal,
}


def answer_for(
    overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], asked_of: str
) -> Answer | None:
    """Return the answer for an operation on `meta` that reads content, else None.

    `asked_of` is the name of the operation that made the first operand.
    """
    if overload is aten._local_scalar_dense.default:
        return _scalar(args[0], asked_of)
    if overload is aten.index.Tensor:
        masked = any(
            index is not None and index.dtype in {torch.bool, torch.uint8} for index in args[1]
        )
        return _index(args, kwargs) if masked else None
    rule = _ANSWERS.get(overload)
    if rule is None:
        return None
    if overload in {aten.index_put_.default, aten.index_put.default} and not any(
        index is not None and index.dtype in {torch.bool, torch.uint8} for index in args[1]
    ):
        return None
    return rule(args, kwargs)
