"""A run -> the results in it that a second run of the same course need not compute again."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload

from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import schema_of

MOST_KEPT = 1 << 27
"""Elements: half a gigabyte. The first results serve most runs, so they are kept first."""


@dataclass(slots=True)
class KeptResults:
    """Results in memory of their own, with the number of writes into each when it was made."""

    _results: dict[int, tuple[Any, tuple[int, ...]]] = field(default_factory=dict)
    _elements: int = 0

    def add(self, node: int, func: OpOverload, arguments: Any, result: Any) -> None:
        """Keep the result of a node, unless it is a view or drawn at random, or too much."""
        # Who does not draw leaves other numbers to those that draw later.
        if torch.Tag.nondeterministic_seeded in func.tags:
            return
        made = list(tensors_in(result))
        size = sum(tensor.numel() for tensor in made)
        given = set(map(_memory, tensors_in(arguments)))
        # torch detaches a new tensor (`full_like`) that someone else holds: another operation.
        if "pin_memory" in schema_of(func).names:
            return
        shared = not given.isdisjoint(map(_memory, made))
        if shared or self._elements + size > MOST_KEPT:
            return
        self._elements += size
        self._results[node] = result, tuple(tensor._version for tensor in made)

    def unchanged(self) -> Iterator[tuple[int, Any]]:
        """Yield what nothing wrote into, by itself or through a view, until the run ended."""
        for node, (result, versions) in self._results.items():
            if versions == tuple(tensor._version for tensor in tensors_in(result)):
                yield node, result


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else -id(tensor)
