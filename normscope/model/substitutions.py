"""Checkpoint + built module -> what was built or chosen in place of what the config asks for."""

from collections.abc import Iterator

import torch
import transformers
from torch import nn

from normscope.checkpoint import Checkpoint
from normscope.graph import Assumption

_ATTENTION = ("attn_implementation", "_attn_implementation")
_DTYPE = ("dtype", "torch_dtype")


def substitutions(
    checkpoint: Checkpoint, config: transformers.PretrainedConfig, module: nn.Module
) -> tuple[Assumption, ...]:
    """Return each choice that the config does not bear out, as a question about the model."""
    said = (
        *_class(checkpoint, module),
        *_code(checkpoint, module),
        *_dtype(checkpoint, module),
        *_attention(checkpoint, config),
        *_experts(module),
    )
    return tuple(Assumption(question=what, where="", answer=answer) for what, answer in said)


def _class(checkpoint: Checkpoint, module: nn.Module) -> Iterator[tuple[str, str]]:
    named = checkpoint.architectures
    built = type(module).__name__
    if named and built not in named:
        yield "class", f"{built} in place of {', '.join(named)}"


def _code(checkpoint: Checkpoint, module: nn.Module) -> Iterator[tuple[str, str]]:
    own = "auto_map" in (checkpoint.config or {})
    if own and type(module).__module__.startswith("transformers.models."):
        yield "code", "transformers' own in place of the checkpoint's (auto_map)"


def _dtype(checkpoint: Checkpoint, module: nn.Module) -> Iterator[tuple[str, str]]:
    raw = checkpoint.config or {}
    named = next((str(raw[key]) for key in _DTYPE if raw.get(key)), None)
    if named is None:
        return
    found = getattr(torch, named.removeprefix("torch."), None)
    floating = isinstance(found, torch.dtype) and found.is_floating_point and found.itemsize > 1
    if not floating:
        first = next((value.dtype for value in module.parameters()), torch.float32)
        yield "dtype", f"{str(first).removeprefix('torch.')} in place of {named}"


def _attention(
    checkpoint: Checkpoint, config: transformers.PretrainedConfig
) -> Iterator[tuple[str, str]]:
    raw = checkpoint.config or {}
    named = next((raw[key] for key in _ATTENTION if raw.get(key)), None)
    ran = getattr(config, "_attn_implementation", None)
    if named is not None and ran is not None and named != ran:
        yield "attention implementation", f"{ran} in place of {named}"


def _experts(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Say how experts ran: transformers gives these fields to each class that has the choice."""
    parts = (vars(part) for part in module.modules())
    if any("has_gate" in fields and "is_transposed" in fields for fields in parts):
        yield "experts implementation", "batched_mm"
