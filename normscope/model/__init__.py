"""Checkpoint -> module, on `meta` to look at or with its weights to measure."""

from normscope.model.build import BuiltModel, build_on_meta
from normscope.model.configuration import known_model_types
from normscope.model.load import LoadedModel, load_model
from normscope.model.offload import (
    Offload,
    StoredTensors,
    check_offload,
    is_offloaded,
    stored_parameter,
)
from normscope.model.sealed import sealed
from normscope.model.tokenizer import load_tokenizer

__all__ = [
    "BuiltModel",
    "LoadedModel",
    "Offload",
    "StoredTensors",
    "build_on_meta",
    "check_offload",
    "is_offloaded",
    "known_model_types",
    "load_model",
    "load_tokenizer",
    "sealed",
    "stored_parameter",
]
