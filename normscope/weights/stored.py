"""What a checkpoint's files hold, by name, and how it is got at."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # rendering a report must not bring in torch
    import torch


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


class TensorSource(Protocol):
    """The tensors of one checkpoint, wherever they lie."""

    container: Container
    files: int
    file_bytes: int
    """Size of all weight files."""
    bytes_read: int
    """How much of them was asked for so far."""

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors by name; their values are not read.

        Raises `NormscopeError` of kind `corrupt` for damaged files.
        """

    def read(self, names: Iterable[str]) -> "Iterator[tuple[str, torch.Tensor]]":
        """Yield the named tensors with their values, and read nothing else."""
