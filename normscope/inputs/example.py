"""What one forward pass is given."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleInputs:
    """Arguments of one forward pass; all tensors are real and small."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    assumed: tuple[str, ...] = ()
    """What was chosen where config and signature leave it open."""

    def fresh(self) -> "ExampleInputs":
        """Return them for one more run: what a run writes into an object stays in that run."""
        return replace(
            self,
            keywords={name: _copied(value) for name, value in self.keywords.items()},
            positional=tuple(map(_copied, self.positional)),
        )


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor | str | int | float | None):
        return value
    try:
        return copy.deepcopy(value)
    except (TypeError, RuntimeError, copy.Error):  # a handle, a tensor with a history
        return value
