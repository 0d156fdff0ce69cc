"""Module + tensors that it does not read -> those that belong to its quantized layers.

No method's names are known here: its tensors stand in modules of the model that are no norms, or
beside values that are no plain numbers. None of their packages is needed.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from torch import nn

from normscope.weights.stored import StoredTensor

_PLAIN = frozenset({"float64", "float32", "float16", "bfloat16"})


def quantized_tensors(
    module: nn.Module,
    unexpected: Mapping[str, str],
    stored: Mapping[str, StoredTensor],
    norms: Collection[str],
) -> frozenset[str]:
    """Return those of the unexpected tensors that hold scales and packed values of layers.

    None where the model's config does not say that it is quantized. `unexpected` has the name in
    the module that each stored name stands for; `norms` are the parameters of norms, whose modules
    are left out.
    """
    if not _is_quantized(module):
        return frozenset()
    modules = {name: not any(part.children()) for name, part in module.named_modules() if name}
    of_norms = {name.rpartition(".")[0] for name in norms}
    packed = {
        target.rpartition(".")[0]
        for name, target in unexpected.items()
        if stored[name].dtype not in _PLAIN
    }
    return frozenset(
        name
        for name, target in unexpected.items()
        if (parents := tuple(_parents(target)))
        and not of_norms.intersection(parents)
        and _belongs(parents, modules, packed)
    )


def _is_quantized(module: nn.Module) -> bool:
    config: Any = getattr(module, "config", None)
    text = getattr(config, "get_text_config", lambda: config)()
    return any(getattr(part, "quantization_config", None) is not None for part in (config, text))


def _belongs(
    parents: tuple[str, ...], modules: Mapping[str, bool], packed: Collection[str]
) -> bool:
    """Tell whether a tensor stands right in a module, below a leaf, or beside packed values."""
    return (
        parents[0] in modules
        or any(modules.get(parent, False) for parent in parents)
        or any(parent in packed for parent in parents)
    )


def _parents(name: str) -> Iterator[str]:
    """Yield the paths that a name stands in, the longest first."""
    while name := name.rpartition(".")[0]:
        yield name
