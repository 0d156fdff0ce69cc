"""Module + stored tensors -> the stored tensor that each parameter would be loaded from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from torch import nn

from normscope.weights.stored import StoredTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNames:
    """How names in the files and names in the module go together."""

    source: Mapping[str, StoredTensor]
    """Parameter -> the stored tensor that becomes it."""
    converted: frozenset[str]
    """Parameters that are put together from several stored tensors, or from a part of one."""
    shapes: Mapping[str, tuple[int, ...]]
    """Of the module's parameters."""
    unexpected: tuple[str, ...]
    """Stored tensors that the module does not read, sorted."""


def match_names(module: nn.Module, stored: Mapping[str, StoredTensor]) -> LoadedNames:
    """Rename each stored tensor as transformers would on loading, and look for its parameter.

    The conversion mappings and the base model's prefix are transformers' own. Parameters that
    share one tensor have one source.
    """
    rename = _renaming(module)
    expected = module.state_dict(keep_vars=True)
    source: dict[str, StoredTensor] = {}
    converted: set[str] = set()
    unexpected: dict[str, str] = {}
    for name, tensor in sorted(stored.items()):
        target, part = rename(name)
        if target not in expected:
            unexpected[name] = target
            continue
        if part:
            converted.add(target)
        source[target] = tensor
    for one, other in _tied(module):
        if one not in source and other in source:
            source[one] = source[other]
    missed = _missed(module, unexpected.values())
    return LoadedNames(
        source=source,
        converted=frozenset(converted),
        shapes={name: tuple(value.shape) for name, value in expected.items()},
        unexpected=tuple(name for name, target in unexpected.items() if target in missed),
    )


def _missed(module: nn.Module, names: Iterable[str]) -> Collection[str]:
    """Return the names that transformers would warn of; some it knows to be of no use."""
    found = SimpleNamespace(missing_keys=set(), unexpected_keys=set(names))
    adjust = getattr(module, "_adjust_missing_and_unexpected_keys", None)
    if adjust is not None:
        adjust(found)
    missed: set[str] = found.unexpected_keys
    return missed


def _renaming(module: nn.Module) -> Any:
    """Return the function from a stored name to (parameter, whether a conversion makes it)."""
    from transformers import PreTrainedModel
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    mapping = get_model_conversion_mapping(module) if isinstance(module, PreTrainedModel) else []
    renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
    converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
    prefix = getattr(module, "base_model_prefix", None)
    expected = module.state_dict()

    def rename(name: str) -> tuple[str, bool]:
        target, pattern = rename_source_key(name, renamings, converters, prefix, expected)
        if target not in expected and name in expected:
            # It had its name already; only the prefix may be needed.
            target, pattern = rename_source_key(name, [], [], prefix, expected)
        return target, pattern is not None

    return rename


def _tied(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield pairs of parameters that are one tensor, both ways round."""
    first: dict[int, str] = {}
    for name, value in module.named_parameters(remove_duplicate=False):
        known = first.setdefault(id(value), name)
        if known != name:
            yield name, known
            yield known, name
