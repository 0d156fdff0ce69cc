"""What a checkpoint's files hold, by name, and how it is got at."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # rendering a report must not bring in torch
    import torch
    from torch import nn


class Container(StrEnum):
    """The kind of file that the tensors lie in."""

    SAFETENSORS = "safetensors"
    PICKLED = "pickled"
    GGUF = "gguf"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor as its file describes it."""

    name: str
    dtype: str
    """In torch's word: `bfloat16`."""
    shape: tuple[int, ...]
    file: str
    """Name of the file."""


class Renaming(Protocol):
    """What becomes of stored tensors on loading."""

    def parameter(self, name: str) -> str:
        """Return the parameter that a stored tensor becomes, or becomes a part of."""

    def added(self, tensor: StoredTensor) -> float | None:
        """Return how much more the file holds than the parameter: 0 for a copy.

        None where the parameter is computed in another way.
        """


class TensorSource(Protocol):
    """The tensors of one checkpoint, wherever they lie."""

    container: Container
    files: int
    file_bytes: int
    """Size of all weight files."""
    bytes_read: int
    """How much of them was asked for so far."""
    stated_eps: tuple[float, ...]
    """The eps of norms that the files themselves name, once described; most formats name none."""

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors by name; their values are not read.

        Raises `NormscopeError` of kind `corrupt` for damaged files.
        """

    def renaming(self, module: "nn.Module") -> Renaming:
        """Return how the tensors, once described, are taken into `module`."""

    def read(self, names: Iterable[str]) -> "Iterator[tuple[str, torch.Tensor]]":
        """Yield the named tensors with their values, and read nothing else."""
