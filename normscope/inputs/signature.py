"""forward() -> the names that it takes."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Names of a callable's parameters, in order."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    open: bool = False
    """Whether it takes any other name too, to hand it on."""

    def __contains__(self, name: str) -> bool:
        return name in self.names


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read a callable's parameters; `*args` and `**kwargs` are left out."""
    every = inspect.signature(function).parameters.values()
    parameters = [
        parameter
        for parameter in every
        if parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
    ]
    return Signature(
        names=tuple(parameter.name for parameter in parameters),
        required=tuple(
            parameter.name for parameter in parameters if parameter.default is parameter.empty
        ),
        open=any(parameter.kind is parameter.VAR_KEYWORD for parameter in every),
    )
