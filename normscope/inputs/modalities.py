"""Images and sound inside a prompt: made first, so that the prompt has a place for each feature."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn

from normscope.errors import NormscopeError
from normscope.inputs.builders import BUILDERS, GIVEN, PROMPT
from normscope.inputs.plan import start
from normscope.inputs.request import Request
from normscope.inputs.signature import signature_of
from normscope.inputs.trial import Trace, first_that_runs

_MODALITIES = {
    "image": (
        ("get_image_features", "get_vision_features"),
        ("image_token_id", "image_token_index"),
    ),
    "audio": (
        ("get_audio_features", "get_speech_features"),
        ("audio_token_id", "audio_token_index"),
    ),
}
"""transformers' names for the method that makes features, and for the token that they replace."""

_FILLED_UP = {"audio": ("audio_soft_tokens_per_image",)}
"""Names of the number to which a model fills up its features after it made them (Gemma 3n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modality:
    """What one kind of feature needs: its inputs, and its placeholder in the prompt."""

    name: str
    inputs: Mapping[str, Any]
    """What the features were made from; without values where they could not be made."""
    token: int | None
    count: int
    """Features for each sequence; 0 where they could not be made."""


def modalities_of(request: Request, trace: Trace, notes: list[str]) -> Iterator[Modality]:
    """Yield the modalities that the module has methods for, with features where it makes them."""
    for name, (methods, tokens) in _MODALITIES.items():
        method = _method(request.module, methods)
        if method is None or not request.facts.has(*tokens):
            continue
        inputs, features = _probed(request, method, trace, notes)
        fixed = request.facts.number(*_FILLED_UP.get(name, ()), default=0) if features else 0
        yield Modality(
            name=name,
            inputs=inputs,
            token=request.facts.first(*tokens),
            count=fixed or features // request.sequences,
        )


def _method(module: nn.Module, names: Sequence[str]) -> Callable[..., Any] | None:
    """Return the outermost method of one of these names that says what it takes.

    A model with a head hands all it is given on to the model inside it.
    """
    for owner in module.modules():
        for name in names:
            method = getattr(owner, name, None)
            if method is not None and signature_of(method).names:
                return cast("Callable[..., Any]", method)
    return None


def _probed(
    request: Request, method: Callable[..., Any], trace: Trace, notes: list[str]
) -> tuple[Mapping[str, Any], int]:
    """Return the inputs that the method runs on, and how many features it makes of them."""
    probe = _Probe(method)
    takes = signature_of(method)
    asked = replace(request, takes=takes)
    names = [
        name
        for name in takes.names
        if name in GIVEN or (name in BUILDERS and name in takes.required)
    ]
    try:
        inputs, graph = first_that_runs(asked, [start(asked, names)], trace, probe)
    except NormscopeError as error:
        notes.append(f"{method.__name__} could not be run: {error.message}")
        return dict.fromkeys(name for name in names if name not in PROMPT), 0
    shapes = [graph.nodes[index].shape for index in graph.outputs]
    rows = sum(torch.Size(shape[:-1]).numel() for shape in shapes)
    return {key: value for key, value in inputs.keywords.items() if key != "use_cache"}, rows


class _Probe(nn.Module):
    """Runs one method of a model as if it were its forward."""

    def __init__(self, method: Callable[..., Any]) -> None:
        super().__init__()
        # The owner stays no child of this module: only the shapes of its features are wanted.
        self._method = method

    def forward(self, **inputs: Any) -> Any:
        """Return the features alone: one tensor, or one for each image."""
        result = self._method(**inputs)
        pooled = getattr(result, "pooler_output", None)
        if pooled is not None:
            return pooled
        if isinstance(result, tuple | list) and result and isinstance(result[0], tuple | list):
            return result[0]
        return getattr(result, "last_hidden_state", result)
