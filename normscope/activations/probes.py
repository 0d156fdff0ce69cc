"""Readings + a running module -> the moments of each value, with hooks that are gone afterwards.

Hooks are per module, never global: those keep torch's fused encoder path from hiding what runs
inside it. Inside the module that runs a functional or written-out norm, a dispatch mode counts the
operations by the same rule as the tracer, those of child modules apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from normscope.activations.plan import Reading
from normscope.activations.reduce import (
    ReducedRows,
    median_magnitude,
    reduce_rows,
    rows_of,
)
from normscope.activations.shelf import Shelf
from normscope.activations.taps import ModuleTap, OperationTap, Side
from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import schema_of


class Witness(Protocol):
    """Something else that wants to see the values that are read."""

    def see(self, index: int, value: torch.Tensor) -> None:
        """Take the value of one reading; it may be overwritten afterwards."""


@dataclass(slots=True)
class Readings:
    """What the probes have read in one forward pass, by the index of the reading."""

    wanted: Sequence[Reading]
    reduced: dict[int, ReducedRows] = field(default_factory=dict)
    magnitudes: dict[int, torch.Tensor] = field(default_factory=dict)
    reducing: bool = False
    """True while the operations that run are this program's own."""
    shelf: Shelf = field(default_factory=Shelf)
    witness: Witness | None = None
    """Sees every value that is read."""

    def take(self, index: int, value: torch.Tensor) -> None:
        """Reduce one value to its moments; nothing else of it is kept."""
        if value.numel() == 0 or not value.is_floating_point():
            return
        self.reducing = True
        try:
            self._reduce(index, value)
        finally:
            self.reducing = False

    def _reduce(self, index: int, value: torch.Tensor) -> None:
        reading = self.wanted[index]
        if self.witness is not None:
            self.witness.see(index, value)
        rows = rows_of(value, reading.axes, reading.groups)
        found = self.reduced[index] = reduce_rows(rows)
        magnitude = median_magnitude(rows, found)
        if magnitude is not None:
            self.magnitudes[index] = magnitude
        found.move_to(self.shelf)


@contextmanager
def probing(
    root: nn.Module, wanted: Sequence[Reading], witness: Witness | None = None
) -> Iterator[Readings]:
    """Attach the probes for one forward pass of `root`; they are removed even after an error."""
    readings = Readings(wanted, witness=witness)
    handles: list[RemovableHandle] = []
    operations = _OperationProbe(readings)
    try:
        handles += _hook_modules(root, readings)
        handles += operations.attach(root)
        yield readings
    finally:
        for handle in handles:
            handle.remove()
        operations.close()


# Values that go into a module or come out of it.


def _hook_modules(root: nn.Module, readings: Readings) -> Iterator[RemovableHandle]:
    probes: dict[str, _ModuleProbe] = {}
    for index, reading in enumerate(readings.wanted):
        tap = reading.tap
        if isinstance(tap, ModuleTap):
            probe = probes.setdefault(tap.path, _ModuleProbe(readings))
            sides = probe.into if tap.side is Side.INTO else probe.out_of
            sides.setdefault(tap.number, []).append((tap.position, index))
            probe.late |= reading.late
    for path, probe in probes.items():
        module = root.get_submodule(path)
        yield module.register_forward_pre_hook(probe.enter, with_kwargs=True)
        if probe.out_of or probe.late:
            yield module.register_forward_hook(probe.leave)


@dataclass(slots=True)
class _ModuleProbe:
    """Counts the runs of one module, and reads the wanted tensors of the wanted runs."""

    readings: Readings
    into: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Run -> (position, reading) of what goes in."""
    out_of: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    runs: int = 0
    late: bool = False
    """Whether what goes in may wait until the module has run.

    Then both values are read at once: the first to be read after other work takes twice as long.
    """
    waiting: list[tuple[int, torch.Tensor]] = field(default_factory=list)

    def enter(self, _module: nn.Module, args: Any, kwargs: Any) -> None:
        found = list(self._wanted(self.into, (args, kwargs)))
        self.runs += 1
        if self.late:
            self.waiting = found
        else:
            self._take(found)

    def leave(self, _module: nn.Module, _args: Any, output: Any) -> None:
        self.runs -= 1
        found = list(self._wanted(self.out_of, output))
        self.runs += 1
        self._take([*self.waiting, *found])
        self.waiting.clear()

    def _wanted(
        self, wanted: Mapping[int, list[tuple[int, int]]], values: Any
    ) -> Iterator[tuple[int, torch.Tensor]]:
        places = wanted.get(self.runs)
        if places is None:
            return
        tensors = list(tensors_in(values))
        for position, index in places:
            if position < len(tensors):
                yield index, tensors[position]

    def _take(self, found: Sequence[tuple[int, torch.Tensor]]) -> None:
        for index, value in found:
            self.readings.take(index, value)


# Values inside a module's forward.


@dataclass(slots=True)
class _Frame:
    """One run of a module; `ordinals` is empty where nothing in it is read."""

    ordinals: Mapping[int, list[int]] = field(default_factory=dict)
    next: int = 0


class _OperationProbe(TorchDispatchMode):
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
