"""normscope: where a model's norms stand, and what they do to its activations."""

from importlib import import_module

# Under `python -m` the current folder still comes first here: nothing is imported that Python has
# not loaded by itself, until `__main__` has taken the folder away.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from normscope.activations import measure_activations, watch
    from normscope.audit.findings import Severity
    from normscope.auditing import audit_families
    from normscope.half_precision import float16_fit
    from normscope.inspection import Inspection, Uninspectable
    from normscope.pipeline import (
        InspectOptions,
        compare_checkpoints,
        inspect_checkpoint,
        inspect_module,
    )

__all__ = [
    "InspectOptions",
    "Inspection",
    "Severity",
    "Uninspectable",
    "__version__",
    "audit_families",
    "compare_checkpoints",
    "float16_fit",
    "inspect_checkpoint",
    "inspect_module",
    "measure_activations",
    "watch",
]

__version__: str

_HOMES = {
    "InspectOptions": "normscope.pipeline",
    "Inspection": "normscope.inspection",
    "Severity": "normscope.audit.findings",
    "Uninspectable": "normscope.inspection",
    "audit_families": "normscope.auditing",
    "compare_checkpoints": "normscope.pipeline",
    "float16_fit": "normscope.half_precision",
    "inspect_checkpoint": "normscope.pipeline",
    "inspect_module": "normscope.pipeline",
    "measure_activations": "normscope.activations",
    "watch": "normscope.activations",
}


def __getattr__(name: str) -> "Any":
    """Load a public verb on first use: none of them is needed to show a help text."""
    if name == "__version__":
        return import_module("normscope.versions").versions()["normscope"]
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
