"""Checkpoint -> module, on `meta` to look at or with its weights to measure."""

from normscope.model.build import BuiltModel, build_on_meta
from normscope.model.configuration import known_model_types
from normscope.model.load import LoadedModel, load_model, load_tokenizer

__all__ = [
    "BuiltModel",
    "LoadedModel",
    "build_on_meta",
    "known_model_types",
    "load_model",
    "load_tokenizer",
]
