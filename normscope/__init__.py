"""normscope: where a model's norms stand, and what they do to its activations."""

from normscope.pipeline import InspectOptions, inspect_checkpoint, inspect_module

__all__ = ["InspectOptions", "inspect_checkpoint", "inspect_module"]
