"""`package.module:factory` -> module and inputs, from the user's own code."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError

FactoryInputs = tuple[tuple[Any, ...], Mapping[str, Any]]


def call_factory(checkpoint: Checkpoint) -> tuple[nn.Module, FactoryInputs | None]:
    """Import and call the factory that a `py:` target names.

    It returns a module, or a module and its inputs: a mapping of keywords, a tuple of positional
    arguments, or one value. Raises `NormscopeError` where it cannot be found, fails, or returns
    anything else.
    """
    factory = _find(checkpoint)
    try:
        result = factory()
    except (Exception, SystemExit) as error:
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: the factory failed: {type(error).__name__}: {error}",
            "call it in a Python session to see where",
        ) from error
    if isinstance(result, nn.Module):
        return result, None
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], nn.Module):
        return result[0], _split_inputs(result[1])
    raise NormscopeError(
        FailureKind.UNKNOWN_ARCHITECTURE,
        f"{checkpoint.target}: the factory returned a {type(result).__name__}",
        "return an nn.Module, or a tuple of (module, inputs)",
    )


def _find(checkpoint: Checkpoint) -> Any:
    path, _, name = (checkpoint.factory or "").partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(path)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{checkpoint.target}: no module named {error.name}",
            "run from the folder that holds it, or install it",
        ) from error
    except AttributeError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND, f"{checkpoint.target}: {path} has no {name}"
        ) from error
    except (Exception, SystemExit) as error:
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: importing {path} failed: {type(error).__name__}: {error}",
        ) from error
    if not callable(found):
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: {name} is a {type(found).__name__}, not a callable",
        )
    return found


def _split_inputs(inputs: Any) -> FactoryInputs:
    if isinstance(inputs, Mapping):
        return (), inputs
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}
