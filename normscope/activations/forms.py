"""The forms in which one module is called, and the same readings in each of them."""

from typing import Any

import torch
from torch import nn

from normscope.activations.plan import Plan, Reading
from normscope.activations.streams import Inputs
from normscope.activations.taps import ModuleTap, Side

Form = tuple[object, ...]
"""Calls of equal form run the same operations."""


def form_of(module: nn.Module, inputs: Inputs) -> Form:
    """Return what decides which way a call takes: the mode, and the kind of each argument."""
    named = sorted(inputs.keywords.items())
    return (
        module.training,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled(),
        tuple(_kind(value) for value in inputs.positional),
        tuple((name, _kind(value)) for name, value in named),
    )


def _kind(value: Any) -> object:
    """Of a tensor's sizes only those of one matter: a single token takes ways of its own."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.device.type, tuple(size == 1 for size in value.shape)
    return value if value is None or isinstance(value, bool) else type(value)


def aligned_readings(first: Plan, other: Plan) -> tuple[Reading, ...]:
    """Return the readings of `other` in the order of `first`, norm by norm.

    One that `other` lacks is replaced by one that never comes.
    """
    known = {(item.norm.name, item.norm.call): item for item in other.norms}
    found: dict[int, Reading] = {}
    for item in first.norms:
        same = known.get((item.norm.name, item.norm.call))
        if same is not None:
            pairs = ((item.before, same.before), (item.after, same.after))
            for index, place in pairs:
                if index is not None and place is not None:
                    found[index] = other.readings[place]
    return tuple(found.get(index, _NEVER) for index in range(len(first.readings)))


_NEVER = Reading(
    tap=ModuleTap(path="", number=-1, side=Side.INTO, position=0), axes=(-1,), groups=None
)
