"""Stored tensors that the module does not read -> those that are stored as a norm's are.

No name tells: a norm's tensors stand at the place of a norm of the module, or are vectors alone in
a module of their own. What has weights of another kind stores matrices.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from normscope.weights.extra import extra_norm_tensors
from normscope.weights.names import LoadedNames
from normscope.weights.stored import Container, StoredTensor

_PLAIN = frozenset({"float64", "float32", "float16", "bfloat16"})


def unread_norm_tensors(
    names: LoadedNames,
    stored: Mapping[str, StoredTensor],
    norms: Collection[str],
    container: Container,
) -> tuple[str, ...]:
    """Return those of the unexpected tensors; `norms` are the parameters of the module's norms."""
    placed = {extra.name for extra in extra_norm_tensors(names, stored, norms)}
    unread = {name: names.renaming.parameter(name) for name in names.unexpected}
    # In a GGUF file every tensor has a name, and so a module, of its own.
    alone = set() if container is Container.GGUF else set(_of_vectors(unread, names, stored))
    return tuple(
        name
        for name, parameter in unread.items()
        if parameter in placed or _module(parameter) in alone
    )


def _of_vectors(
    unread: Mapping[str, str], names: LoadedNames, stored: Mapping[str, StoredTensor]
) -> Iterator[str]:
    """Yield the modules that the model has no parameter in, and that hold nothing but vectors."""
    known = _around(_module(name) for name in names.shapes)
    packed = {name: names.renaming.parameter(name) for name in names.quantized}
    tensors: dict[str, list[StoredTensor]] = {}
    for name, parameter in {**unread, **packed}.items():
        tensors.setdefault(_module(parameter), []).append(stored[name])
    above = _around(map(_module, tensors))
    for module, own in tensors.items():
        if module and module not in known | above and _are_vectors(own):
            yield module


def _are_vectors(tensors: Iterable[StoredTensor]) -> bool:
    """Tell whether there are vectors of plain numbers alone, beside single numbers (a count)."""
    larger = [tensor for tensor in tensors if tensor.shape != ()]
    return bool(larger) and all(
        len(tensor.shape) == 1 and tensor.dtype in _PLAIN for tensor in larger
    )


def _around(modules: Iterable[str]) -> set[str]:
    """Return the modules and all that they lie in."""
    found: set[str] = set()
    for path in modules:
        while path and path not in found:
            found.add(path)
            path = _module(path)
    return found


def _module(parameter: str) -> str:
    return parameter.rpartition(".")[0]
