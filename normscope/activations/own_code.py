"""A `py:` factory's module and inputs -> the same on the device and in the dtype asked for."""

from dataclasses import replace

import torch
from torch import nn

from normscope.activations.streams import Inputs
from normscope.model import BuiltModel
from normscope.tracing.devices import mapped


def moved(built: BuiltModel, *, device: str, dtype: str | None) -> BuiltModel:
    """Move a module; without a dtype it keeps its own."""
    wanted = None if dtype is None else getattr(torch, dtype)
    module: nn.Module = built.module.to(device=device, dtype=wanted)
    return replace(built, module=module, dtype=dtype or built.dtype)


def own_inputs(built: BuiltModel, *, device: str, dtype: str | None) -> Inputs | None:
    """Return the inputs that the factory gave along, or None; only numbers with a point change."""
    if built.inputs is None:
        return None
    wanted = None if dtype is None else getattr(torch, dtype)

    def change(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device, wanted if tensor.is_floating_point() else None)

    positional, keywords = built.inputs
    return Inputs(positional=mapped(positional, change), keywords=mapped(dict(keywords), change))
