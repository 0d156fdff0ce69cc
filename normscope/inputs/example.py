"""What one forward pass is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleInputs:
    """Arguments of one forward pass; all tensors are real and small."""

    keywords: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    assumed: tuple[str, ...] = ()
    """What was chosen where config and signature leave it open."""
