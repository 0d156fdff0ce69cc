"""A module that was traced + edits -> the values that a second run, edited, gives.

The run is recognized operation by operation: the n-th one that returns a tensor is the n-th node
of the graph that is an operation of its own. An edit acts on one operand of one operation, so a
value can be changed along one of its paths and left alone along the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph, Node, Origin
from normscope.inputs import ExampleInputs
from normscope.tracing import running_eagerly
from normscope.tracing.modules import CallStack, recorded_calls, tensors_in
from normscope.tracing.schema import schema_of
from normscope.verification.kept import KeptResults

Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One operand of one operation."""

    reader: int
    """Node of the operation."""
    position: int
    """Index into the node's operands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What to change, and what to look at."""

    operands: Mapping[Edge, Change] = field(default_factory=dict)
    outputs: Mapping[int, Change] = field(default_factory=dict)
    """Node -> how its value changes for whatever reads it."""
    watched: Sequence[Edge | int] = ()
    """Operands and values; the run ends when the last of them has been seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A real module, the inputs that it runs on, and the graph of that run."""

    module: nn.Module
    inputs: ExampleInputs
    graph: Graph
    kept: dict[int, Any] = field(default_factory=dict)
    """Results of the unedited run that need not be computed again, by node."""


Values = Mapping[Edge | int, torch.Tensor]


def rerun(subject: Subject, edit: Edit, *, keep: bool = False) -> Values:
    """Run the module again with the edits and return what was watched, in float64.

    What lies before the first edit is taken from the subject where it was kept there; `keep` does
    so. Raises `NormscopeError` where the run takes another course than the traced one.
    """
    results = KeptResults() if keep else None
    mode = _EditedRun(subject, edit, results)
    stack = CallStack()
    stack.enter("")
    given = subject.inputs.fresh()
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(0)
        try:
            # As it was traced: torch's fused encoder, for one, would be another course.
            with running_eagerly(), recorded_calls(subject.module, stack, lambda _: ()), mode:
                subject.module(*given.positional, **given.keywords)
        except _AllSeen:
            pass
        except NormscopeError:
            raise
        except Exception as error:
            raise NormscopeError(
                FailureKind.TRACE_FAILED, f"an edited run failed: {type(error).__name__}: {error}"
            ) from error
    if len(mode.seen) < len(set(edit.watched)):
        raise NormscopeError(FailureKind.TRACE_FAILED, "an edited run took another course")
    if results is not None:
        subject.kept.update(results.unchanged())
    return mode.seen


class _AllSeen(Exception):  # it ends a run and is no error
    """Everything that is watched has been seen."""


class _EditedRun(TorchDispatchMode):
    def __init__(self, subject: Subject, edit: Edit, results: KeptResults | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no annotations there
        self._nodes = filter(is_visible, subject.graph.nodes)
        self._edit = edit
        self._results = results
        edited = [*(edge.reader for edge in edit.operands), *edit.outputs]
        first = min(edited, default=len(subject.graph.nodes))
        self._kept = {} if results is not None else subject.kept
        self._first_edited = first
        self._readers = {edge.reader for edge in edit.operands}
        self._watched = dict.fromkeys(edit.watched)
        self._operands_watched: dict[int, list[Edge]] = {}
        for item in self._watched:
            if isinstance(item, Edge):
                self._operands_watched.setdefault(item.reader, []).append(item)
        self.seen: dict[Edge | int, torch.Tensor] = {}

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not any("Tensor" in str(returned.type) for returned in func._schema.returns):
            return func(*args, **kwargs)
        node = next(self._nodes, None)
        if node is None or node.operation != schema_of(func).operation:
            raise NormscopeError(FailureKind.TRACE_FAILED, "an edited run took another course")
        known = node.index < self._first_edited and node.index not in self._operands_watched
        if known and node.index in self._kept:
            result = self._kept[node.index]
        else:
            result = self._run(func, node, args, kwargs)
        if self._results is not None:
            self._results.add(node.index, func, (args, kwargs), result)
        self._look(node.index, result)
        if len(self.seen) == len(self._watched):
            raise _AllSeen
        return result

    def _run(
        self, func: OpOverload, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        restored: list[tuple[torch.Tensor, torch.Tensor]] = []
        if node.index in self._readers or node.index in self._operands_watched:
            tensors = list(tensors_in((args, kwargs)))
            args, kwargs = self._edited((args, kwargs), node, tensors, restored)
        args, kwargs = _by_batch_statistics(func, args, kwargs)
        result = func(*args, **kwargs)
        if schema_of(func).written:
            for original, changed in restored:
                if result is changed:
                    result = original.copy_(changed)
        return self._changed_outputs(node, result, in_place=bool(schema_of(func).written))

    def _edited(
        self,
        arguments: Any,
        node: Node,
        tensors: Sequence[torch.Tensor],
        restored: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> Any:
        replaced: list[torch.Tensor] = []
        for position, tensor in enumerate(tensors):
            edge = Edge(reader=node.index, position=position)
            change = self._edit.operands.get(edge)
            value = tensor if change is None else change(tensor.clone())
            if change is not None:
                restored.append((tensor, value))
            if edge in self._watched:
                self.seen[edge] = _kept(value)
            replaced.append(value)
        return _refilled(arguments, iter(replaced))

    def _changed_outputs(self, node: Node, result: Any, *, in_place: bool) -> Any:
        outputs = list(tensors_in(result))
        changes = [self._edit.outputs.get(node.index + place) for place in range(len(outputs))]
        if not any(changes):
            return result
        pairs = zip(outputs, changes, strict=True)
        changed = [one if change is None else change(one) for one, change in pairs]
        if in_place:
            # Whatever shares its memory sees the change too.
            return outputs[0].copy_(changed[0])
        return _refilled(result, iter(changed))

    def _look(self, index: int, result: Any) -> None:
        for place, output in enumerate(tensors_in(result)):
            if index + place in self._watched:
                self.seen[index + place] = _kept(output)


def _kept(value: torch.Tensor) -> torch.Tensor:
    """Return a copy in double precision; of a Fourier transform, also its imaginary part."""
    return value.detach().clone().to(torch.complex128 if value.is_complex() else torch.float64)


def is_visible(node: Node) -> bool:
    """Tell whether a node is an operation that a rerun meets, with its first output."""
    return node.origin is Origin.OPERATION and node.output == 0 and node.operation != "write"


def _refilled(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """Return nested arguments with their tensors replaced, in order."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, tuple | list):
        return type(value)(_refilled(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _refilled(item, tensors) for key, item in value.items()}
    return value


def _by_batch_statistics(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Let a batch norm in eval mode normalize by its input, which shows where it stands."""
    names = schema_of(func).names
    if "running_mean" not in names:
        return args, kwargs
    bound = dict(zip(names, args, strict=False)) | kwargs
    if bound.get("running_mean") is None or bound.get("training") is True:
        return args, kwargs
    x = bound["input"]
    axes = (0, *range(2, x.dim()))
    bound["running_mean"] = x.mean(axes)
    bound["running_var"] = x.var(axes, unbiased=False)
    return (), {name: bound[name] for name in names if name in bound}
