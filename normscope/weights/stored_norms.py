"""What two checkpoints' files are compared by: their norms' tensors and values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normscope.weights.report import StoredParameter

if TYPE_CHECKING:  # a comparison must not bring in torch
    from normscope.weights.effective import EffectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTensor:
    """A stored tensor that stands where a norm's parameter would, and that the model lacks."""

    name: str
    """As the module would name it."""
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNorms:
    """The tensors of one checkpoint's norms."""

    parameters: Mapping[str, StoredParameter]
    extra: tuple[ExtraTensor, ...]
    values: Mapping[str, "EffectiveValue"]
    """Of the parameters; those that are missing or computed on loading are left out."""
