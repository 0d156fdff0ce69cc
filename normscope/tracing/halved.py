"""Modules that could be norms -> what each kind of them does on half-precision input.

A model in float32 casts nothing, so the order of casts around a norm's gain does not show in its
own pass. One module of each class is copied in bfloat16 and run alone, on `meta`.
"""

import copy
from collections.abc import Callable, Mapping

import torch
from torch import nn

from normscope.errors import NormscopeError
from normscope.graph import Graph
from normscope.tracing.unrun import could_be_a_norm

_Trace = Callable[[nn.Module, Mapping[str, object], tuple[torch.Tensor, ...]], Graph]


def graphs_in_half(module: nn.Module, graph: Graph, trace: _Trace) -> dict[str, Graph]:
    """Return the graph of one module of each class that could be a norm, by the class's name.

    Only modules in float32 that took one tensor are run; `graph` is the model's own pass.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for call in graph.calls:
        if len(call.inputs) == 1 and graph.nodes[call.inputs[0]].dtype == "float32":
            shapes.setdefault(call.path, graph.nodes[call.inputs[0]].shape)
    halved: dict[str, Graph] = {}
    for path, child in module.named_modules():
        name = graph.modules[path].class_name if path in graph.modules else ""
        if name and name not in halved and path in shapes and _is_a_float_norm(child):
            found = _in_half(child, shapes[path], trace)
            if found is not None:
                halved[name] = found
    return halved


def _is_a_float_norm(module: nn.Module) -> bool:
    return could_be_a_norm(module) and next(module.parameters()).dtype is torch.float32


def _in_half(module: nn.Module, shape: tuple[int, ...], trace: _Trace) -> Graph | None:
    try:
        half = copy.deepcopy(module).to(device="meta", dtype=torch.bfloat16)
        return trace(half, {}, (torch.zeros(shape, dtype=torch.bfloat16, device="meta"),))
    except (NormscopeError, RuntimeError, TypeError, NotImplementedError):
        # A module that cannot be copied or takes no half precision only leaves one fact unknown.
        return None
