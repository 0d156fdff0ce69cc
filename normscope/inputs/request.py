"""What the builders of inputs know: the module, its sizes, and how much of each thing to make."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from normscope.inputs.facts import Facts
from normscope.inputs.signature import Signature

SEQUENCES = 2
"""Two of unequal length catch a mistake about which axis is the batch."""
TOKENS = 8
PADDING = 3
"""Padded positions at the end of the second sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to the builders."""

    module: nn.Module
    facts: Facts
    takes: Signature
    pinned: Mapping[str, Any] = field(default_factory=dict)
    """Inputs that are already chosen."""
    placeholders: Mapping[int, int] = field(default_factory=dict)
    """How often each placeholder token stands in every sequence: one for each image feature."""
    chosen: Mapping[str, int] = field(default_factory=dict)
    """Which option of each input is meant, for those that must fit another."""
    builders: Mapping[str, "Builder"] = field(default_factory=dict)
    sequences: int = SEQUENCES

    def without(self, names: Set[str]) -> "Request":
        """Return the question as of a forward() that does not take these names."""
        kept = tuple(name for name in self.takes.names if name not in names)
        return replace(self, takes=replace(self.takes, names=kept))

    def value(self, name: str) -> Any:
        """Return the input that is given under this name in the same call."""
        if name in self.pinned:
            return self.pinned[name]
        options = self.builders[name](self)
        return options[min(self.chosen.get(name, 0), len(options) - 1)]


Builder = Callable[[Request], list[Any]]
"""Makes one input in all the layouts that models use, the likeliest first."""
