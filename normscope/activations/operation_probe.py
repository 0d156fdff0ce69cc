"""Readings of operations -> hooks and a dispatch mode that find them inside the modules.

Inside the module that runs a functional or written-out norm, a dispatch mode counts the operations
by the same rule as the tracer, those of child modules apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from normscope.activations.readings import Readings
from normscope.activations.taps import OperationTap, Side
from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import schema_of


@dataclass(slots=True)
class _Frame:
    """One run of a module; `ordinals` is empty where nothing in it is read."""

    ordinals: Mapping[int, list[int]] = field(default_factory=dict)
    next: int = 0


class OperationProbe(TorchDispatchMode):
    """Reads operands and results of operations, located by module run and ordinal."""

    def __init__(self, readings: Readings) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no annotations there
        self._readings = readings
        self._runs: dict[str, dict[int, dict[int, list[int]]]] = {}
        """Path -> run -> ordinal -> readings."""
        self._counts: dict[str, int] = {}
        self._frames: list[_Frame] = []
        self._active = False

    def attach(self, root: nn.Module) -> Iterator[RemovableHandle]:
        """Hook every module, so that its operations are told from those of its parent."""
        for index, reading in enumerate(self._readings.wanted):
            tap = reading.tap
            if isinstance(tap, OperationTap):
                ordinals = self._runs.setdefault(tap.path, {}).setdefault(tap.number, {})
                ordinals.setdefault(tap.ordinal, []).append(index)
        if not self._runs:
            return
        for path, module in root.named_modules():
            # First, as the tracer's: what a hook of the user's computes is counted to the module.
            yield module.register_forward_pre_hook(self._entering(path), prepend=True)
            yield module.register_forward_hook(self._leaving, always_call=True)

    def begin(self) -> None:
        """Begin to count."""
        self._counts.clear()
        self.close()

    def close(self) -> None:
        """Leave the mode where a run ended without its hook."""
        self._frames.clear()
        self._stop()

    def _entering(self, path: str) -> Any:
        runs = self._runs.get(path, {})

        def hook(_module: nn.Module, _args: Any) -> None:
            number = self._counts.get(path, 0)
            self._counts[path] = number + 1
            ordinals = runs.get(number)
            if ordinals is None and not self._frames:
                return
            self._frames.append(_Frame(ordinals or {}))
            self._start()

        return hook

    def _leaving(self, _module: nn.Module, _args: Any, _output: Any) -> None:
        if self._frames:
            self._frames.pop()
        if not self._frames:
            self._stop()

    def _start(self) -> None:
        if not self._active:
            self._active = True
            self.__enter__()  # type: ignore[no-untyped-call]

    def _stop(self) -> None:
        if self._active:
            self._active = False
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._readings.reducing:
            return func(*args, **kwargs)
        frame = self._frames[-1] if self._frames else _Frame()
        wanted = frame.ordinals.get(frame.next, ())
        for index in wanted:
            self._take(index, func, Side.INTO, (args, kwargs))
        result = func(*args, **kwargs)
        for index in wanted:
            self._take(index, func, Side.OUT_OF, result)
        if next(tensors_in(result), None) is not None:
            frame.next += 1
        return result

    def _take(self, index: int, func: OpOverload, side: Side, values: Any) -> None:
        tap = self._readings.wanted[index].tap
        if not isinstance(tap, OperationTap) or tap.side is not side:
            return
        tensors = list(tensors_in(values))
        if schema_of(func).operation == tap.operation and tap.position < len(tensors):
            self._readings.take(index, tensors[tap.position])
