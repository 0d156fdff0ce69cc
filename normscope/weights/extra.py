"""Stored tensors that the module does not read -> those that stand among its norms' parameters."""

from collections.abc import Iterable, Iterator, Mapping

from normscope.weights.names import LoadedNames
from normscope.weights.stored import StoredTensor
from normscope.weights.stored_norms import ExtraTensor


def extra_norm_tensors(
    names: LoadedNames, stored: Mapping[str, StoredTensor], norms: Iterable[str]
) -> Iterator[ExtraTensor]:
    """Yield the tensors that lie in a norm's module, or in the same place of another layer.

    `norms` are the parameters of norms.
    """
    places = {_numberless(_module(name)) for name in norms}
    for name in names.unexpected:
        parameter = names.renaming.parameter(name)
        if _numberless(_module(parameter)) in places:
            yield ExtraTensor(name=parameter, shape=stored[name].shape)


def _module(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _numberless(path: str) -> tuple[str, ...]:
    return tuple("*" if part.isdecimal() else part for part in path.split("."))
