"""Module + stored tensors -> the stored tensor that each parameter would be loaded from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from torch import nn

from normscope.weights.quantized import quantized_tensors
from normscope.weights.stored import Renaming, StoredTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNames:
    """How names in the files and names in the module go together."""

    source: Mapping[str, StoredTensor]
    """Parameter -> the stored tensor that becomes it."""
    tied: Mapping[str, str]
    """Parameter -> the one that it is one tensor with, and that the files have in its place."""
    shapes: Mapping[str, tuple[int, ...]]
    """Of the module's parameters."""
    unexpected: tuple[str, ...]
    """Stored tensors that the module does not read, sorted."""
    quantized: frozenset[str]
    """Stored tensors beside those, which belong to quantized layers."""
    renaming: Renaming


def match_names(
    module: nn.Module,
    stored: Mapping[str, StoredTensor],
    renaming: Renaming,
    norms: Collection[str],
) -> LoadedNames:
    """Rename each stored tensor as transformers would on loading, and look for its parameter.

    Parameters that share one tensor have one source. `norms` are the parameters of norms, which no
    method quantizes.
    """
    expected = module.state_dict(keep_vars=True)
    source: dict[str, StoredTensor] = {}
    unexpected: dict[str, str] = {}
    for name, tensor in sorted(stored.items()):
        target = renaming.parameter(name)
        if target in expected:
            source[target] = tensor
        else:
            unexpected[name] = target
    tied = {one: other for one, other in _tied(module) if one not in source and other in source}
    missed = _missed(module, unexpected.values())
    unexpected = {name: target for name, target in unexpected.items() if target in missed}
    quantized = quantized_tensors(module, unexpected, stored, norms)
    return LoadedNames(
        source=source | {one: source[other] for one, other in tied.items()},
        tied=tied,
        shapes={name: tuple(value.shape) for name, value in expected.items()},
        unexpected=tuple(name for name in unexpected if name not in quantized),
        quantized=quantized,
        renaming=renaming,
    )


class LoadedByName:
    """How transformers takes tensors of its own names, and of older ones, into a module.

    The conversion mappings and the base model's prefix are transformers' own.
    """

    def __init__(self, module: nn.Module) -> None:
        from transformers import PreTrainedModel
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming

        mapping: list[Any] = []
        if isinstance(module, PreTrainedModel):
            mapping = get_model_conversion_mapping(module)
        self._renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
        self._prefix = getattr(module, "base_model_prefix", None)
        self._expected = module.state_dict()
        self._computed: set[str] = set()

    def parameter(self, name: str) -> str:
        """Return the parameter that a stored tensor becomes, or becomes a part of."""
        from transformers.core_model_loading import rename_source_key

        target, pattern = rename_source_key(
            name, self._renamings, self._converters, self._prefix, self._expected
        )
        if target not in self._expected and name in self._expected:
            # It had its name already; only the prefix may be needed.
            target, pattern = rename_source_key(name, [], [], self._prefix, self._expected)
        if pattern is not None:
            self._computed.add(name)
        return str(target)

    def added(self, tensor: StoredTensor) -> float | None:
        """Return 0 for a copy, None for what is put together from several tensors or parts."""
        self.parameter(tensor.name)
        return None if tensor.name in self._computed else 0.0


def _missed(module: nn.Module, names: Iterable[str]) -> Collection[str]:
    """Return the names that transformers would warn of; some it knows to be of no use."""
    found = SimpleNamespace(missing_keys=set(), unexpected_keys=set(names))
    adjust = getattr(module, "_adjust_missing_and_unexpected_keys", None)
    if adjust is not None:
        adjust(found)
    missed: set[str] = found.unexpected_keys
    return missed


def _tied(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield pairs of parameters that are one tensor, both ways round."""
    first: dict[int, str] = {}
    for name, value in module.named_parameters(remove_duplicate=False):
        known = first.setdefault(id(value), name)
        if known != name:
            yield name, known
            yield known, name
