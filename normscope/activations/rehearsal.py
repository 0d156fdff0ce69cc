"""module + the arguments of a call -> the plan of its measurement, before the call itself runs.

The pass that finds the norms must be that of the call, with its dropout and its gradients, or the
operations would not be the same. It must not be noticed either: random numbers, buffers, what
modules keep in their attributes, and caches among the arguments are as before.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from normscope.activations.plan import Plan, plan_measurement
from normscope.activations.streams import Inputs
from normscope.errors import FailureKind, NormscopeError


def rehearse(module: nn.Module, inputs: Inputs) -> Plan:
    """Run the module once on copies of `inputs`, as it is, and return what to read.

    Raises `NormscopeError` of kind `trace_failed` where the forward fails or the inputs cannot be
    copied.
    """
    copies = copied(inputs)
    with unnoticed(module):
        return plan_measurement(module, copies, as_it_is=True)


def copied(inputs: Inputs) -> Inputs:
    """Copy every argument and what it holds: a cache that is passed in would be filled twice."""
    try:
        with _DetachedCopies():
            positional, keywords = copy.deepcopy((inputs.positional, dict(inputs.keywords)))
    except Exception as error:
        raise NormscopeError(
            FailureKind.TRACE_FAILED,
            f"what the model is called with cannot be copied: {type(error).__name__}: {error}",
            "the norms are found in a call of its own: pass tensors and plain containers",
        ) from error
    return Inputs(positional=positional, keywords=keywords, mask=inputs.mask)


class _DetachedCopies(TorchFunctionMode):
    """Lets tensors be copied that have a history: `copy.deepcopy` refuses them."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                twin = tensor.detach().clone()
                memo[id(tensor)] = twin.requires_grad_(tensor.requires_grad)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))


@contextmanager
def unnoticed(module: nn.Module) -> Iterator[None]:
    """Put back random numbers, buffers and plain attributes of all modules afterwards."""
    attributes = [(child, dict(vars(child))) for child in module.modules()]
    registered = [(child._buffers, dict(child._buffers)) for child in module.modules()]
    contents = [(item, item.detach().clone()) for item in module.buffers() if not item.is_meta]
    try:
        for child in module.modules():
            child._compiled_call_impl = None  # what watches a call must not see this one
        with torch.random.fork_rng(devices=_accelerators(module)):
            yield
    finally:
        for child, kept in attributes:
            vars(child).clear()
            vars(child).update(kept)
        for buffers, named in registered:
            buffers.clear()
            buffers.update(named)
        with torch.no_grad():
            for buffer, content in contents:
                if not torch.equal(buffer, content):
                    buffer.copy_(content)


def _accelerators(module: nn.Module) -> list[int]:
    """Return the CUDA devices that the module lies on; torch keeps random numbers for each."""
    return sorted({item.device.index or 0 for item in module.parameters() if item.is_cuda})
