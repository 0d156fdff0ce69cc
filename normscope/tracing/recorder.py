"""A dispatch mode that writes down every operation as a graph node.

Values that no weight reaches (masks, position ids, grids, sizes) are computed for real; an
operation moves to `meta` as soon as one of its operands is there. Under a module with real weights
nothing moves: the same recorder then sees what really ran.
"""

import sys
from collections.abc import Hashable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from normscope.graph import Argument, Assumption, Node, Origin, Source
from normscope.tracing.answers import answer_for
from normscope.tracing.budget import OperationBudget
from normscope.tracing.devices import LARGEST_RESULT, grows, leaves_meta, mapped, on_meta, zeros
from normscope.tracing.known_results import KnownResults, argument_key
from normscope.tracing.modules import CallStack, tensors_in
from normscope.tracing.questions import Asked, Questions
from normscope.tracing.schema import Schema, is_factory, schema_of
from normscope.tracing.values import ValueTable

if TYPE_CHECKING:
    from types import FrameType

    from normscope.limits import Limits
    from normscope.tracing.placed import PlacedParameters

_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)
_COPY = torch.ops.aten._to_copy.default
_ASKS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)


class Recorder(TorchDispatchMode):
    """Records nodes while it is active; `nodes`, `stack` and `assumptions` are its result."""

    def __init__(self, largest: int = LARGEST_RESULT, limits: "Limits | None" = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._largest = largest
        self._budget = OperationBudget(limits)
        self.nodes: list[Node] = []
        self.stack = CallStack()
        self.assumptions: dict[Assumption, None] = {}
        self.parameters: PlacedParameters | None = None
        self._values = ValueTable(self._joined_write)
        self._questions = Questions()
        self._results = KnownResults()
        self._shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """Shapes and slots, each kept once: a deep model has ten thousand equal ones."""
        self._arguments: dict[Hashable, dict[str, Argument]] = {}

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        schema = schema_of(func)
        self._budget.take_one()
        result = self._run(func, schema, args, kwargs)
        self._record(schema, args, kwargs, result)
        return result

    # Leaves of the graph.

    def leaf(self, tensor: torch.Tensor, origin: Origin, name: str) -> int:
        """Add an input, a parameter, a buffer or a constant and return its node."""
        index = self._add(origin.value, (), (), tensor, None, origin=origin, name=name)
        self._values.bind(tensor, index)
        return index

    def nodes_of(self, tensors: Iterable[torch.Tensor]) -> tuple[int, ...]:
        """Return the node of each tensor; one never seen becomes a constant."""
        return tuple(self._node_of(tensor) for tensor in tensors)

    def _node_of(self, tensor: torch.Tensor) -> int:
        found = self._values.find(tensor)
        if found is None and self.parameters is not None:
            path = self.stack.calls[self.stack.current()].path
            found = self.parameters.find(tensor, path)
            if found is not None:
                self._values.bind(tensor, found)
        return self.leaf(tensor, Origin.CONSTANT, "") if found is None else found

    def _joined_write(
        self, tensor: torch.Tensor, old: int, written: tuple[int, ...], covers: bool
    ) -> int:
        """Add the node of a value that changed because its storage was written elsewhere."""
        operands = written if covers else (old, *written)
        return self._add("write", operands, ("self",), tensor, {"covers": covers})

    # Running an operation.

    def _run(
        self, func: OpOverload, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        tensors = list(tensors_in((args, kwargs)))
        if not any(tensor.is_meta for tensor in tensors):
            if grows(func, args, kwargs, tensors, self._largest):
                if not tensors:
                    kwargs = {**kwargs, "device": torch.device("meta")}
                return func(*on_meta(args), **on_meta(kwargs))
            return func(*args, **self._kept_real(func, tensors, kwargs))
        if func is _COPY and leaves_meta(kwargs):
            kwargs = {**kwargs, "device": torch.device("meta")}
        answer = answer_for(func, args, kwargs, self._asked(func, tensors))
        if answer is not None:
            result, wording = answer
            if wording:
                self._assume(schema.operation, wording)
            return result
        if schema.written and not _written(schema, args, kwargs).is_meta:
            return self._write_into_real(func, schema, args, kwargs)
        return self._results.run(func, schema, args, kwargs)

    def _kept_real(
        self, func: OpOverload, tensors: list[torch.Tensor], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Keep a value real that the code wants on the device of its weights."""
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "meta":
            return kwargs
        if tensors or is_factory(func):
            return {**kwargs, "device": torch.device("cpu")}
        return kwargs

    def _write_into_real(
        self, func: OpOverload, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Write zeros of the right shape; the graph keeps where the value comes from."""
        result, answer = _written(schema, args, kwargs), "left as it was"
        with suppress(RuntimeError, IndexError):  # zeros may be no valid index or size
            result, answer = func(*zeros(args), **zeros(kwargs)), "zeros"
        self._assume(f"{schema.operation} into data", answer)
        return result

    def on_meta(self, value: Any) -> Any:
        """Return an argument with every real tensor in it replaced by a `meta` twin."""
        return mapped(value, self._twin)

    def _twin(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            return tensor
        with _disable_current_modes():
            twin = tensor.to("meta")
        self._values.bind(twin, self._node_of(tensor))
        return twin

    def _asked(self, func: OpOverload, tensors: list[torch.Tensor]) -> Asked:
        if func not in _ASKS:
            return Asked()
        return self._questions.about(self.nodes, self._values.find(tensors[0]))

    def _assume(self, question: str, answer: str) -> None:
        where = self.stack.calls[self.stack.current()].path
        self.assumptions[Assumption(question=question, where=where, answer=answer)] = None

    # Writing it down.

    def _record(
        self, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        operands, slots, arguments = self._read_arguments(schema, args, kwargs)
        outputs = list(tensors_in(result))
        if not outputs:
            return
        source = _source()
        first: int | None = None
        ordinal = self._next_ordinal()
        for position, tensor in enumerate(outputs):
            index = self._add(
                schema.operation if first is None else "getitem",
                operands if first is None else (first,),
                slots if first is None else ("self",),
                tensor,
                arguments if first is None else None,
                ordinal=ordinal,
                output=position,
                source=source,
            )
            first = index if first is None else first
            if schema.written:
                self._values.write(tensor, index)
            else:
                self._values.bind(tensor, index)

    def _read_arguments(
        self, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[int, ...], tuple[str, ...], dict[str, Argument]]:
        operands: list[int] = []
        slots: list[str] = []
        arguments: dict[str, Argument] = {}
        named = [*zip(schema.names, args, strict=False), *kwargs.items()]
        for name, value in named:
            found = self.nodes_of(tensors_in(value))
            if found:
                operands.extend(found)
                slots.extend([name] * len(found))
            else:
                arguments[name] = _plain(value)
        kept = self._arguments.setdefault(argument_key(arguments), arguments)
        return tuple(operands), tuple(slots), kept

    def _next_ordinal(self) -> int:
        call = self.stack.calls[self.stack.current()]
        call.operations += 1
        return call.operations - 1

    def _add(
        self,
        operation: str,
        operands: tuple[int, ...],
        slots: tuple[str, ...],
        tensor: torch.Tensor,
        arguments: dict[str, Argument] | None,
        *,
        origin: Origin = Origin.OPERATION,
        ordinal: int = 0,
        output: int = 0,
        name: str = "",
        source: Source | None = None,
    ) -> int:
        call = self.stack.running[-1] if self.stack.running else 0
        shape = tuple(tensor.shape)
        self.nodes.append(
            Node(
                index=len(self.nodes),
                operation=operation,
                operands=operands,
                slots=self._shared.setdefault(slots, slots),
                shape=self._shared.setdefault(shape, shape),
                dtype=_dtype_name(tensor.dtype),
                origin=origin,
                module=self.stack.calls[call].path if self.stack.calls else "",
                call=call,
                ordinal=ordinal,
                output=output,
                arguments=arguments,
                name=name,
                source=source,
            )
        )
        return len(self.nodes) - 1


def _written(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    name = schema.written[0]
    position = schema.names.index(name)
    value = args[position] if position < len(args) else kwargs[name]
    return next(tensors_in(value))


def _plain(value: Any) -> Argument:
    """Return an argument as a value that no torch type hides in."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.dtype):
        return _dtype_name(value)
    if isinstance(value, tuple | list) and all(
        item is None or isinstance(item, bool | int | float | str) for item in value
    ):
        return tuple(value)
    return str(value)


def _source() -> Source | None:
    """Return the innermost line of code outside torch and this package."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_TORCH, _HERE, "<")):
            return _source_at(file, frame.f_lineno, frame.f_code.co_qualname)
        frame = frame.f_back
    return None


@cache
def _source_at(file: str, line: int, function: str) -> Source:
    """Return one object for each line: every block of a stack runs the same ones."""
    return Source(file=file, line=line, function=function)


@cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
