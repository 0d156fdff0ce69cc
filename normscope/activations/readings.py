"""Values of a running model -> their moments, by what was asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from normscope.activations.compiled import measure_pair, measure_rows
from normscope.activations.plan import Reading
from normscope.activations.reduce import ReducedRows, median_magnitude, reduce_rows, rows_of
from normscope.activations.shelf import Room, Shelf

_MASSIVE = 100.0
"""Only beside larger values is it asked what an ordinary one is (NS401)."""


class Witness(Protocol):
    """Something else that wants to see the values that are read."""

    def see(self, index: int, value: torch.Tensor) -> None:
        """Take the value of one reading; it may be overwritten afterwards."""


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
    """Readings whose rows are those of the last axis, and which nobody else sees."""
    _directly: dict[int, tuple[int, torch.Size]] = field(default_factory=dict)
    """Where the moments lie, and the shape of the activation: no more is done between two
    operations of the model than must be."""
    _reduced: dict[int, ReducedRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = (n for n, reading in enumerate(self.wanted) if reading.is_by_features)
        self._as_it_lies = frozenset(() if self.witness is not None else found)

    def take(self, index: int, value: torch.Tensor) -> None:
        """Reduce one value to its moments; nothing else of it is kept."""
        found = measure_rows(value, self.shelf) if index in self._as_it_lies else None
        if found is None:
            self._with_torch(self._reduce, index, value)
            return
        self._directly[index] = (found[0], value.shape)
        if not found[1] <= _MASSIVE:
            self._with_torch(self._look_for_massive, index, value)

    def take_both(self, indices: tuple[int, int], one: torch.Tensor, other: torch.Tensor) -> None:
        """Reduce two values, at once where that can be."""
        first, second = indices
        lie = first in self._as_it_lies and second in self._as_it_lies
        found = measure_pair(one, other, self.shelf) if lie else None
        if found is None:
            self.take(first, one)
            self.take(second, other)
            return
        self._directly[first] = (found[0], one.shape)
        self._directly[second] = (found[1], other.shape)
        if not found[2] <= _MASSIVE:
            self._with_torch(self._look_for_massive, first, one)
            self._with_torch(self._look_for_massive, second, other)

    def reduced(self, index: int) -> ReducedRows | None:
        """Return the moments of one value; None where it was not there."""
        if index in self._directly:
            return ReducedRows(self._room(index), self._directly[index][1])
        return self._reduced.get(index)

    def _room(self, index: int) -> Room:
        address, shape = self._directly[index]
        return Room(self.shelf, address, shape[:-1].numel())

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
        rows = rows_of(value, reading.axes, reading.groups)
        self._reduced[index] = reduce_rows(rows, self.shelf)
        self._look_for_massive(index, value)

    def _look_for_massive(self, index: int, value: torch.Tensor) -> None:
        """On an accelerator every value may be: asking for its peak would wait for the device."""
        found = self.reduced(index)
        if found is not None and (not value.is_cpu or found.largest() > _MASSIVE):
            self.magnitudes[index] = median_magnitude(value)

    def clear(self) -> None:
        """Forget everything, for the next forward pass."""
        self._directly.clear()
        self._reduced.clear()
        self.magnitudes.clear()
        self.shelf.clear()
