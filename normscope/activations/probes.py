"""Readings + a running module -> the moments of each value, with hooks that are gone afterwards.

Hooks are per module, never global: those keep torch's fused encoder path from hiding what runs
inside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from normscope.activations.operation_probe import OperationProbe
from normscope.activations.plan import Reading
from normscope.activations.readings import Readings, Witness
from normscope.activations.shelf import Shelf
from normscope.activations.taps import ModuleTap, Side
from normscope.tracing.modules import tensors_in


@dataclass(slots=True)
class Probes:
    """What is attached to a module, for any number of forward passes."""

    readings: Readings
    modules: Sequence["ModuleProbe"]
    operations: OperationProbe

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
    operations = OperationProbe(readings)
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


def _module_probes(readings: Readings) -> dict[str, "ModuleProbe"]:
    probes: dict[str, ModuleProbe] = {}
    for index, reading in enumerate(readings.wanted):
        tap = reading.tap
        if isinstance(tap, ModuleTap):
            probe = probes.setdefault(tap.path, ModuleProbe(readings))
            sides = probe.into if tap.side is Side.INTO else probe.out_of
            sides.setdefault(tap.number, []).append((tap.position, index))
            probe.late |= reading.late
    for probe in probes.values():
        probe.settle()
    return probes


def _hook_modules(
    root: nn.Module, probes: Mapping[str, "ModuleProbe"]
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
class ModuleProbe:
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
        """Note the readings where they are the usual ones."""
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
            self.readings.take_both(usual, args[0], output)
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
