"""nn.Module, on `meta` or not -> a copy of it in float32 on the CPU, every parameter random.

A norm of a normalized value changes nothing where its gain is one, so nothing may keep the values
that initialization gives: gains and biases lie in [0.5, 1.5], weights keep the size of what they
read.
"""

import copy
import math

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from normscope.errors import FailureKind, NormscopeError


def randomized(module: nn.Module, seed: int = 0) -> nn.Module:
    """Return the copy, in eval mode; buffers that hold content keep it.

    The module itself is left as it is. Raises `NormscopeError` for one that cannot be copied.
    """
    try:
        twin = copy.deepcopy(module).eval()
    except Exception as error:
        raise NormscopeError(
            FailureKind.TRACE_FAILED, f"{type(module).__qualname__} cannot be copied: {error}"
        ) from error
    source = torch.Generator().manual_seed(seed)
    made: dict[int, nn.Parameter] = {}
    for owner in twin.modules():
        for name, value in owner._parameters.items():
            if value is None:
                continue
            if id(value) not in made:
                random = _random(owner, value, source)
                made[id(value)] = nn.Parameter(random, requires_grad=False)
            owner._parameters[name] = made[id(value)]
        for name, buffer in owner._buffers.items():
            if buffer is not None:
                owner._buffers[name] = _real(buffer)
        _make_attributes_real(owner)
    return twin


def _make_attributes_real(owner: nn.Module) -> None:
    """Give content to what a module keeps like a buffer and does not register as one."""
    for name, value in vars(owner).items():
        if isinstance(value, torch.Tensor) and value.is_meta:
            setattr(owner, name, _real(value))
        elif isinstance(value, list | tuple) and any(map(_lies_on_meta, value)):
            real = (_real(item) if _lies_on_meta(item) else item for item in value)
            setattr(owner, name, type(value)(real))


def _lies_on_meta(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _random(owner: nn.Module, value: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    if not value.is_floating_point():
        return torch.zeros(value.shape, dtype=value.dtype)
    if value.numel() == max(value.shape, default=1) and not _sums_up(owner, value):
        return torch.rand(value.shape, generator=source) + 0.5
    return torch.randn(value.shape, generator=source) / math.sqrt(_fan_in(owner, value))


def _sums_up(owner: nn.Module, value: torch.Tensor) -> bool:
    """Tell whether a weight is no gain for all that it has one row: a layer with one output."""
    return isinstance(owner, nn.Linear | _ConvNd) and value.dim() > 1 and _fan_in(owner, value) > 1


def _fan_in(owner: nn.Module, value: torch.Tensor) -> int:
    """Return how many elements are summed up with this weight."""
    if isinstance(owner, nn.Embedding):
        return 1
    return math.prod(value.shape[1:]) if isinstance(owner, _ConvNd) else value.shape[-1]


def _real(buffer: torch.Tensor) -> torch.Tensor:
    if not buffer.is_floating_point():
        on_meta = buffer.is_meta
        return torch.zeros(buffer.shape, dtype=buffer.dtype) if on_meta else buffer.cpu()
    return torch.ones(buffer.shape) if buffer.is_meta else buffer.float().cpu()
