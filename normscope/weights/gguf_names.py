"""Module + architecture of a GGUF file -> which parameter each of its tensors becomes, and how.

Names and conversions are transformers' own; what a conversion does is found out by trying it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.weights.stored import Renaming, StoredTensor

Values = np.ndarray[Any, Any]


def gguf_renaming(target: str, architecture: str, module: nn.Module) -> Renaming:
    """Return how transformers takes the tensors of a GGUF file into `module`.

    It has a newer and an older loader, each for its own architectures. Raises `NormscopeError` of
    kind `unknown_architecture` where neither can.
    """
    try:
        from transformers.integrations.gguf.utils import is_gguf_arch_supported

        if is_gguf_arch_supported(architecture):
            return _Mapped(architecture, module)
        return _Legacy(architecture, module)
    except Exception as error:
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{target}: transformers {transformers.__version__} cannot tell which tensor of this "
            f"{architecture} file is which: {type(error).__name__}: {error}",
            "use the safetensors checkpoint that it was converted from",
        ) from error


class _Mapped:
    """By the transforms that the newer loader runs, one list for each architecture."""

    def __init__(self, architecture: str, module: nn.Module) -> None:
        from transformers.core_model_loading import WeightConverter, WeightRenaming
        from transformers.integrations.gguf.utils import get_gguf_conversion_mapping

        mapping: list[Any] = get_gguf_conversion_mapping(architecture, module.config)
        self._renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
        self._prefix = getattr(module, "base_model_prefix", None)
        self._expected = module.state_dict()

    def parameter(self, name: str) -> str:
        return self._renamed(name)[0]

    def added(self, tensor: StoredTensor) -> float | None:
        target, pattern = self._renamed(tensor.name)
        if pattern is None:
            return 0.0
        converter = next(c for c in self._converters if pattern in c.source_patterns)
        if len(converter.source_patterns) > 1:
            return None

        def convert(values: Values) -> Values:
            content: Any = torch.from_numpy(values)
            for operation in converter.operations:
                (content,) = operation.convert(
                    {pattern: content}, source_patterns=[pattern], target_patterns=[target]
                ).values()
            converted: Values = content.numpy()
            return converted

        return _added(convert, tensor)

    def _renamed(self, name: str) -> tuple[str, str | None]:
        from transformers.core_model_loading import rename_source_key

        found: tuple[str, str | None] = rename_source_key(
            name, self._renamings, self._converters, self._prefix, self._expected
        )
        return found


class _Legacy:
    """By gguf's map of names, and the processor that the older loader has for an architecture."""

    def __init__(self, architecture: str, module: nn.Module) -> None:
        from transformers import modeling_gguf_pytorch_utils as legacy

        config: Any = module.config
        kind: Any = legacy.TENSOR_PROCESSORS.get(architecture, legacy.TensorProcessor)
        self._processor: Any = kind(config=config.to_dict())
        with _maps_made_once():
            self._names: Mapping[str, str] = legacy.get_gguf_hf_weights_map(module, self._processor)

    def parameter(self, name: str) -> str:
        return self._names.get(name, name)

    def added(self, tensor: StoredTensor) -> float | None:
        def convert(values: Values) -> Values:
            found: Values = self._processor.process(
                weights=values,
                name=tensor.name,
                tensor_key_mapping=self._names,
                parsed_parameters={"tensors": {}},
            ).weights
            return found

        return _added(convert, tensor)


@contextmanager
def _maps_made_once() -> Iterator[None]:
    """Keep gguf's map of names: transformers 5.24 has it made anew for each module of a model."""
    import gguf

    package: Any = gguf
    usual = package.get_tensor_name_map
    package.get_tensor_name_map = cache(usual)
    try:
        yield
    finally:
        package.get_tensor_name_map = usual


def _added(convert: Callable[[Values], Values], tensor: StoredTensor) -> float | None:
    """Return what a conversion takes away from every value, or None where it does anything else."""
    tried = np.arange(1, int(np.prod(tensor.shape)) + 1, dtype=np.float32).reshape(tensor.shape)
    with np.errstate(all="ignore"):  # what it makes of numbers that are none of its own
        found = convert(tried.copy())
    if found.shape != tried.shape or not tried.size:
        return None if tried.size else 0.0
    taken = np.unique(tried - found)
    return float(taken[0]) if len(taken) == 1 and np.isfinite(taken[0]) else None
