"""normscope: where a model's norms stand, and what they do to its activations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from normscope.versions import versions

if TYPE_CHECKING:
    from normscope.activations import measure_activations, watch
    from normscope.pipeline import (
        InspectOptions,
        compare_checkpoints,
        inspect_checkpoint,
        inspect_module,
    )

__all__ = [
    "InspectOptions",
    "__version__",
    "compare_checkpoints",
    "inspect_checkpoint",
    "inspect_module",
    "measure_activations",
    "watch",
]

__version__ = versions()["normscope"]

_HOMES = {
    "InspectOptions": "normscope.pipeline",
    "compare_checkpoints": "normscope.pipeline",
    "inspect_checkpoint": "normscope.pipeline",
    "inspect_module": "normscope.pipeline",
    "measure_activations": "normscope.activations",
    "watch": "normscope.activations",
}


def __getattr__(name: str) -> Any:
    """Load a public verb on first use: none of them is needed to show a help text."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
