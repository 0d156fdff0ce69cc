"""Modules that a forward pass did not reach -> what each would do by itself.

A norm that was built and never ran is found like any other, by tracing it: a module without
children whose parameters are all vectors is run alone on an input as wide as its parameters.
"""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

from normscope.errors import NormscopeError
from normscope.graph import Graph

_TOKENS = 3
_Trace = Callable[[nn.Module, Mapping[str, object], tuple[torch.Tensor, ...]], Graph]


def graphs_of_unrun(module: nn.Module, ran: Mapping[str, int], trace: _Trace) -> dict[str, Graph]:
    """Return the graph of each module that could be a norm and did not run, by its path."""
    graphs: dict[str, Graph] = {}
    for path, child in module.named_modules():
        if path in ran or not path or not could_be_a_norm(child):
            continue
        for example in _examples(child):
            try:
                graphs[path] = trace(child, {}, (example,))
            except NormscopeError:
                continue
            break
    return graphs


def could_be_a_norm(module: nn.Module) -> bool:
    """Tell whether a module has vectors for parameters and no modules inside."""
    vectors = [parameter.dim() == 1 for parameter in module.parameters()]
    return bool(vectors) and all(vectors) and not any(True for _ in module.children())


def _examples(module: nn.Module) -> Iterator[torch.Tensor]:
    """Yield inputs with the width last, then as channels of a sequence and of an image."""
    parameter = next(module.parameters())
    width = parameter.numel()
    for shape in ((2, _TOKENS, width), (2, width, _TOKENS), (2, width, _TOKENS, _TOKENS)):
        yield torch.zeros(shape, dtype=parameter.dtype, device=parameter.device)
