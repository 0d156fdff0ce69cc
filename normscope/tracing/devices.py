"""Arguments -> the same arguments on another device, or with zeros in place of content."""

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from normscope.tracing.answers import LARGEST_REAL
from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import is_factory

_WORTH_ASKING = 1 << 12
LARGEST_RESULT = 1 << 24
"""Elements beyond which even a value that no weight reaches stays on `meta`."""


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return nested arguments with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def on_meta(value: Any) -> Any:
    """Return arguments with every tensor, and the device that is asked for, on `meta`."""
    if isinstance(value, torch.device):
        return torch.device("meta")
    if isinstance(value, dict) and "device" in value and value["device"] is not None:
        value = {**value, "device": torch.device("meta")}
    return mapped(value, lambda tensor: tensor if tensor.is_meta else tensor.to("meta"))


def zeros(value: Any) -> Any:
    """Return arguments with real zeros in place of each `meta` tensor of bearable size."""
    return mapped(
        value,
        lambda tensor: (
            torch.zeros(tensor.shape, dtype=tensor.dtype)
            if tensor.is_meta and tensor.numel() <= LARGEST_REAL
            else tensor
        ),
    )


def leaves_meta(kwargs: dict[str, Any]) -> bool:
    """Tell whether another device than `meta` is asked for."""
    device = kwargs.get("device")
    return device is not None and torch.device(device).type != "meta"


def grows(
    func: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[torch.Tensor],
    largest: int = LARGEST_RESULT,
) -> bool:
    """Tell whether the result is too large to be computed for real (a mask over long sound)."""
    if tensors and max(tensor.numel() for tensor in tensors) < _WORTH_ASKING:
        return False
    if not tensors and not is_factory(func):
        return False
    asked = kwargs if tensors else {**kwargs, "device": torch.device("meta")}
    try:
        result = func(*on_meta(args), **on_meta(asked))
    except (RuntimeError, NotImplementedError):  # its shape depends on content
        return False
    return any(tensor.numel() > largest for tensor in tensors_in(result))
