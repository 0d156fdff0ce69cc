"""module + inputs -> Graph; the only translator from torch."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph, Origin
from normscope.limits import Limits, failure_of_size
from normscope.tracing.autocast import autocast_known_on_meta
from normscope.tracing.devices import LARGEST_RESULT
from normscope.tracing.eager import running_eagerly
from normscope.tracing.halved import graphs_in_half
from normscope.tracing.mode import evaluating
from normscope.tracing.modules import module_tree, recorded_calls, tensors_in
from normscope.tracing.placed import PlacedParameters
from normscope.tracing.recorder import Recorder
from normscope.tracing.unrun import graphs_of_unrun


def trace_module(
    module: nn.Module,
    inputs: Mapping[str, Any],
    positional: tuple[Any, ...] = (),
    *,
    as_it_is: bool = False,
    largest: int = LARGEST_RESULT,
    limits: Limits | None = None,
) -> Graph:
    """Run one forward pass of `module` and return its dataflow graph.

    Modules that the pass did not reach and that could be norms are run by themselves, for
    `Graph.unrun`, and one of each class in half precision, for `Graph.halved`. The module runs in
    eval mode and without gradients, on `meta` or with real weights; its mode is restored. With
    `as_it_is` the pass has dropout and gradients as the caller has them: that of a training step.
    A value of more elements than `largest` stays without content, also under real weights.
    Raises `NormscopeError` of kind `trace_failed` where the forward itself fails, and `OverLimit`
    where it takes more operations than `limits`.
    """
    mode = nullcontext() if as_it_is else None
    graph = _trace(module, inputs, positional, mode, largest, limits)
    return replace(
        graph,
        unrun=graphs_of_unrun(module, graph.call_counts, _trace),
        halved=graphs_in_half(module, graph, _trace),
    )


@contextmanager
def _at_rest(module: nn.Module) -> Iterator[None]:
    with evaluating(module), torch.no_grad():
        yield


def _trace(
    module: nn.Module,
    inputs: Mapping[str, Any],
    positional: tuple[Any, ...],
    mode: AbstractContextManager[None] | None = None,
    largest: int = LARGEST_RESULT,
    limits: Limits | None = None,
) -> Graph:
    recorder = Recorder(largest, limits)
    recorder.stack.enter("")
    _add_leaves(recorder, module, inputs, positional)
    with mode or _at_rest(module), running_eagerly(), autocast_known_on_meta():
        try:
            with (
                recorded_calls(module, recorder.stack, recorder.nodes_of),
                _MetaContent(recorder),
                recorder,
            ):
                result = module(*positional, **inputs)
        except Exception as error:
            raise NormscopeError(
                failure_of_size(error) or FailureKind.TRACE_FAILED,
                f"the forward pass failed: {type(error).__name__}: {_first_line(error)}",
                "report it with the config at hand; the traceback is shown with --verbose",
            ) from error
        outputs = recorder.nodes_of(tensors_in(result))
    recorder.stack.leave(outputs)
    return Graph(
        nodes=tuple(recorder.nodes),
        modules=module_tree(module),
        calls=recorder.stack.frozen(),
        outputs=outputs,
        assumptions=tuple(recorder.assumptions),
    )


def _add_leaves(
    recorder: Recorder, module: nn.Module, inputs: Mapping[str, Any], positional: tuple[Any, ...]
) -> None:
    placed = recorder.parameters = PlacedParameters(module)
    for name, parameter in module.named_parameters():
        placed.leaves[name] = recorder.leaf(parameter, Origin.PARAMETER, name)
    for name, buffer in module.named_buffers():
        recorder.leaf(buffer, Origin.BUFFER, name)
    for position, value in enumerate(positional):
        for tensor in tensors_in(value):
            recorder.leaf(tensor, Origin.INPUT, str(position))
    for name, value in inputs.items():
        for tensor in tensors_in(value):
            recorder.leaf(tensor, Origin.INPUT, name)


class _MetaContent(TorchFunctionMode):
    """Answers what reaches a tensor's content past the dispatcher: `tolist`, `numpy`."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if (
            func in {torch.Tensor.tolist, torch.Tensor.numpy}
            and isinstance(args[0], torch.Tensor)
            and args[0].is_meta
        ):
            self._recorder._assume(func.__name__, "ones")
            ones = torch.ones(args[0].shape, dtype=args[0].dtype, device="cpu")
            return func(ones, *args[1:], **(kwargs or {}))
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError:
            # A check ahead of the dispatcher (LSTM, cdist) saw a real value beside a `meta` one.
            if len({tensor.is_meta for tensor in tensors_in((args, kwargs))}) < 2:
                raise
            return func(*self._recorder.on_meta(args), **self._recorder.on_meta(kwargs or {}))


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else "no message"
