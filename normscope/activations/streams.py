"""module + inputs -> the tokens that go in: how many, which ids, which of them count."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from normscope.activations.layouts import Extent

ENCODER, DECODER = "encoder", "decoder"
_DECODER_INPUTS = ("decoder_input_ids", "decoder_inputs_embeds")
"""What transformers calls the tokens of the second side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What one forward pass is called with."""

    keywords: Mapping[str, Any]
    positional: tuple[Any, ...] = ()
    mask: torch.Tensor | None = None
    """[batch, sequence], true where a token counts; the attention mask unless given."""
    numbers: tuple[int, ...] | None = None
    """Which sequences of the input these are; the next ones unless given."""
    completes: bool = True
    """Whether every sequence before the last of these has been given by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStream:
    """The tokens of one side of a model."""

    name: str
    """`encoder` or `decoder` where there are two, else ""."""
    source: str
    """Name of the input that holds them, as the graph has it."""
    extent: Extent
    ids: torch.Tensor | None
    """[batch, sequence]; None where the input holds vectors."""
    real: torch.Tensor
    """[batch, sequence] booleans, false on padding."""


def as_inputs(inputs: Any, mask: torch.Tensor | None = None) -> Inputs:
    """Sort what a caller gave: a mapping of keywords, a tuple of positions, or one tensor."""
    if isinstance(inputs, Mapping):
        return Inputs(keywords=dict(inputs), mask=mask)
    positional = inputs if isinstance(inputs, tuple) else (inputs,)
    return Inputs(keywords={}, positional=positional, mask=mask)


def token_streams(module: nn.Module, inputs: Inputs) -> tuple[TokenStream, ...]:
    """Return the tokens that go into `module`; none where its main input is no sequence."""
    decoder = next((name for name in _DECODER_INPUTS if _is_given(inputs, name)), None)
    main = _main_input(module, inputs, decoder)
    names = (ENCODER, DECODER) if main is not None and decoder is not None else ("", "")
    found = (
        None if main is None else _stream(names[0], main, _value(inputs, main), inputs, ""),
        None
        if decoder is None
        else _stream(names[1], decoder, _value(inputs, decoder), inputs, "decoder_"),
    )
    return tuple(stream for stream in found if stream is not None)


def _is_given(inputs: Inputs, name: str) -> bool:
    return isinstance(inputs.keywords.get(name), torch.Tensor)


def _main_input(module: nn.Module, inputs: Inputs, decoder: str | None) -> str | None:
    """transformers names a model's main input; elsewhere it is the first tensor."""
    named = getattr(module, "main_input_name", None)
    if isinstance(named, str) and _is_given(inputs, named):
        return named
    for position, value in enumerate(inputs.positional):
        if isinstance(value, torch.Tensor):
            return str(position)
    tensors = (name for name in inputs.keywords if _is_given(inputs, name) and name != decoder)
    return next(tensors, None)


def _value(inputs: Inputs, name: str) -> torch.Tensor:
    found = inputs.positional[int(name)] if name.isdecimal() else inputs.keywords[name]
    assert isinstance(found, torch.Tensor)
    return found


def _stream(
    name: str, source: str, value: torch.Tensor, inputs: Inputs, prefix: str
) -> TokenStream | None:
    ids = None if value.is_floating_point() else value
    shape = tuple(value.shape) if ids is not None else tuple(value.shape[:-1])
    if ids is not None and len(shape) == 1:
        shape = (1, *shape)
    if len(shape) != 2 or value.is_complex() or 0 in shape:
        return None  # an image, a waveform, single vectors: no sequence of tokens
    batch, length = shape
    return TokenStream(
        name=name,
        source=source,
        extent=Extent(batch=batch, length=length),
        ids=None if ids is None else ids.reshape(batch, length),
        real=_real(inputs, prefix, batch, length),
    )


def _real(inputs: Inputs, prefix: str, batch: int, length: int) -> torch.Tensor:
    masks = (None if prefix else inputs.mask, inputs.keywords.get(f"{prefix}attention_mask"))
    for mask in masks:
        if isinstance(mask, torch.Tensor) and mask.numel() == batch * length and mask.dim() <= 2:
            return mask.reshape(batch, length).cpu() != 0
    return torch.ones((batch, length), dtype=torch.bool)


def told_apart(inputs: Inputs) -> Inputs:
    """Copy a tensor that is given twice: the graph knows a value by the tensor that holds it."""
    seen = {id(value) for value in inputs.positional}
    keywords: dict[str, Any] = {}
    for name, value in inputs.keywords.items():
        twice = isinstance(value, torch.Tensor) and id(value) in seen
        keywords[name] = value.clone() if twice else value
        seen.add(id(value))
    return replace(inputs, keywords=keywords)


# Inputs of another size, to see which axis follows which.

_SMALL = Extent(batch=2, length=5)


def resized(inputs: Inputs, streams: tuple[TokenStream, ...]) -> Inputs:
    """Return inputs of another batch size and other lengths, cut from these or repeating them."""
    wanted = [(stream.extent, _other(stream.extent, shift)) for shift, stream in enumerate(streams)]
    return Inputs(
        keywords={name: _fitted(value, wanted) for name, value in inputs.keywords.items()},
        positional=tuple(_fitted(value, wanted) for value in inputs.positional),
    )


def _other(extent: Extent, shift: int) -> Extent:
    batch = _SMALL.batch if extent.batch != _SMALL.batch else _SMALL.batch + 1
    length = _SMALL.length + 2 * shift
    return Extent(batch=batch, length=length if length != extent.length else length + 4)


def _fitted(value: Any, wanted: list[tuple[Extent, Extent]]) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    for old, new in wanted:
        if value.dim() == 1 and len(value) == old.length:
            return _taken(value, 0, new.length)
        if value.dim() < 2 or value.shape[:2] != (old.batch, old.length):
            continue
        return _taken(_taken(value, 0, new.batch), 1, new.length)
    if wanted and value.dim() and len(value) == wanted[0][0].batch:
        return _taken(value, 0, wanted[0][1].batch)
    return value


def _taken(value: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    index = torch.arange(size, device=value.device) % value.shape[axis]
    return value.index_select(axis, index)
