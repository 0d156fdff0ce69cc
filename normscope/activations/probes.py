"""Readings + a running module -> the moments of each value, with hooks that are gone afterwards.

Hooks are per module, never global: those keep torch's fused encoder path from hiding what runs
inside it. Inside the module that runs a functional or written-out norm, a dispatch mode counts the
operations by the same rule as the tracer, those of child modules apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from normscope.activations.compiled import measure_rows
from normscope.activations.plan import Reading
from normscope.activations.reduce import (
    ReducedRows,
    median_magnitude,
    reduce_rows,
    rows_of,
)
from normscope.activations.shelf import Room, Shelf
from normscope.activations.taps import ModuleTap, OperationTap, Side
from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import schema_of


class Witness(Protocol):
    """Something else that wants to see the values that are read."""

    def see(self, index: int, value: torch.Tensor) -> None:
        """Take the value of one reading; it may be overwritten afterwards."""


_MASSIVE = 100.0
"""Only beside larger values is it asked what an ordinary one is (NS401)."""


@dataclass(slots=True)
class Readings:
    """What the probes have read in one forward pass, by the index of the reading."""

    wanted: Sequence[Reading]
    shelf: Shelf = field(default_factory=Shelf)
    """Holds what is read until the next pass."""
    witness: Witness | None = None
    """Sees every value that is read."""
    magnitudes: dict[int, torch.Tensor] = field(default_factory=dict)
    reducing: bool = False
    """True while the operations that run are this program's own."""
    _as_it_lies: frozenset[int] = field(init=False)
    """Readings whose rows are those of the last axis."""
    _directly: dict[int, tuple[int, float, torch.Size]] = field(default_factory=dict)
    _reduced: dict[int, ReducedRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = (n for n, reading in enumerate(self.wanted) if reading.is_by_features)
        self._as_it_lies = frozenset(() if self.witness is not None else found)

    def take(self, index: int, value: torch.Tensor) -> None:
        """Reduce one value to its moments; nothing else of it is kept."""
        found = measure_rows(value, self.shelf) if index in self._as_it_lies else None
        if found is None:
            self._with_torch(self._reduce, index, value)
        else:
            self._directly[index] = (*found, value.shape)
            if found[1] > _MASSIVE:
                self._with_torch(self._ask_magnitude, index, value)

    def reduced(self, index: int) -> ReducedRows | None:
        """Return the moments of one value; None where it was not there."""
        if index in self._directly:
            address, largest, shape = self._directly[index]
            room = Room(self.shelf, address, shape[:-1].numel())
            return ReducedRows(room, largest, shape)
        return self._reduced.get(index)

    def _with_torch(self, function: Callable[[int, torch.Tensor], None], *given: Any) -> None:
        """Run operations of torch that are none of the model's."""
        self.reducing = True
        try:
            function(*given)
        finally:
            self.reducing = False

    def _reduce(self, index: int, value: torch.Tensor) -> None:
        if value.numel() == 0 or not value.is_floating_point():
            return
        if self.witness is not None:
            self.witness.see(index, value)
        reading = self.wanted[index]
        found = reduce_rows(rows_of(value, reading.axes, reading.groups), self.shelf)
        self._reduced[index] = found
        if found.largest > _MASSIVE:
            self._ask_magnitude(index, value)

    def _ask_magnitude(self, index: int, value: torch.Tensor) -> None:
        self.magnitudes[index] = median_magnitude(value)

    def clear(self) -> None:
        """Forget everything, for the next forward pass."""
        self._directly.clear()
        self._reduced.clear()
        self.magnitudes.clear()
        self.shelf.clear()


@dataclass(slots=True)
class Probes:
    """What is attached to a module, for any number of forward passes."""

    readings: Readings
    modules: Sequence["_ModuleProbe"]
    operations: "_OperationProbe"

    def begin(self) -> Readings:
        """Begin a forward pass; what the one before it read is overwritten."""
        for probe in self.modules:
            probe.runs = 0
        self.operations.begin()
        self.readings.clear()
        return self.readings


@contextmanager
def probing(
    root: nn.Module,
    wanted: Sequence[Reading],
    *,
    witness: Witness | None = None,
    shelf: Shelf | None = None,
) -> Iterator[Probes]:
    """Attach the probes to `root`; they are removed even after an error."""
    readings = Readings(wanted, witness=witness, shelf=shelf or Shelf())
    modules = _module_probes(readings)
    operations = _OperationProbe(readings)
    handles: list[RemovableHandle] = []
    try:
        handles += _hook_modules(root, modules)
        handles += operations.attach(root)
        yield Probes(readings, tuple(modules.values()), operations)
    finally:
        for handle in handles:
            handle.remove()
        operations.close()


# Values that go into a module or come out of it.


def _module_probes(readings: Readings) -> dict[str, "_ModuleProbe"]:
    probes: dict[str, _ModuleProbe] = {}
    for index, reading in enumerate(readings.wanted):
        tap = reading.tap
        if isinstance(tap, ModuleTap):
            probe = probes.setdefault(tap.path, _ModuleProbe(readings))
            sides = probe.into if tap.side is Side.INTO else probe.out_of
            sides.setdefault(tap.number, []).append((tap.position, index))
            probe.late |= reading.late
    for probe in probes.values():
        probe.settle()
    return probes


def _hook_modules(
    root: nn.Module, probes: Mapping[str, "_ModuleProbe"]
) -> Iterator[RemovableHandle]:
    for path, probe in probes.items():
        module = root.get_submodule(path)
        if probe.late:
            yield module.register_forward_hook(probe.pass_by, with_kwargs=True)
            continue
        yield module.register_forward_pre_hook(probe.enter, with_kwargs=True)
        if probe.out_of:
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
    usual: tuple[int, int] | None = None
    """The readings of what goes into the first run and of what comes out of it, where that is all.

    Then the hook takes the fewest steps: see `compiled`.
    """

    def settle(self) -> None:
        """Tell whether the wanted is the usual."""
        if self.into.keys() == self.out_of.keys() == {0}:
            wanted = [*self.into[0], *self.out_of[0]]
            if [position for position, _ in wanted] == [0, 0]:
                self.usual = (wanted[0][1], wanted[1][1])

    def enter(self, _module: nn.Module, args: Any, kwargs: Any) -> None:
        """Begin a run."""
        self._take(self.into.get(self.runs), (args, kwargs))
        self.runs += 1

    def leave(self, _module: nn.Module, _args: Any, output: Any) -> None:
        """End the run that began last."""
        self._take(self.out_of.get(self.runs - 1), output)

    def pass_by(self, _module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """See a whole run when it is over."""
        run = self.runs
        self.runs = run + 1
        usual = self.usual if run == 0 and args and type(output) is torch.Tensor else None
        if usual is not None and type(args[0]) is torch.Tensor:
            before, after = usual
            self.readings.take(before, args[0])
            self.readings.take(after, output)
        else:
            self._take(self.into.get(run), (args, kwargs))
            self._take(self.out_of.get(run), output)

    def _take(self, places: Sequence[tuple[int, int]] | None, values: Any) -> None:
        if places is None:
            return
        tensors = (values,) if isinstance(values, torch.Tensor) else tuple(tensors_in(values))
        for position, index in places:
            if position < len(tensors):
                self.readings.take(index, tensors[position])


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
