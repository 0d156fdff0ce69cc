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

    def __contains__(self, name: str) -> bool:
        return name in self.names


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read a callable's parameters; `*args` and `**kwargs` are left out."""
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
    ]
    return Signature(
        names=tuple(parameter.name for parameter in parameters),
        required=tuple(
            parameter.name for parameter in parameters if parameter.default is parameter.empty
        ),
    )
