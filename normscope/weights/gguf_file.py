"""GGUF file -> its tensors: the header alone, or the values that are asked for."""

import math
import mmap
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.weights.gguf_layout import (
    DamagedGgufError,
    GgufLayout,
    GgufTensor,
    read_layout,
)
from normscope.weights.gguf_names import gguf_renaming
from normscope.weights.stored import Container, Renaming, StoredTensor

_PLAIN = {0: torch.float32, 1: torch.float16, 28: torch.float64, 30: torch.bfloat16}
"""ggml's numbers of the types that hold values and no blocks."""


class GgufFile:
    """One GGUF file. Needs the package gguf."""

    container = Container.GGUF
    files = 1

    def __init__(self, target: str, path: Path) -> None:
        _need_gguf(target)
        self.file_bytes = path.stat().st_size
        self.bytes_read = 0
        self.stated_eps: tuple[float, ...] = ()
        self._target = target
        self._path = path
        self._architecture = ""
        self._tensors: dict[str, GgufTensor] = {}

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors; refuses values that overlap or lie outside of the file."""
        try:
            layout = _layout(self._path)
            self._tensors = _checked(layout, self.file_bytes)
        except (DamagedGgufError, OSError) as error:
            raise self._damaged(error) from error
        self.bytes_read += layout.data_start
        self._architecture = str(layout.metadata.get("general.architecture"))
        self.stated_eps = tuple(_eps(layout, self._architecture))
        return {
            name: StoredTensor(
                name=name, dtype=_dtype(item.kind), shape=item.shape, file=self._path.name
            )
            for name, item in self._tensors.items()
        }

    def renaming(self, module: nn.Module) -> Renaming:
        """Return how transformers takes the tensors into `module`."""
        return gguf_renaming(self._target, self._architecture, module)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the named tensors; those that are stored in blocks are unpacked."""
        try:
            with self._path.open("rb") as file:
                for name in sorted(set(names), key=lambda name: self._tensors[name].start):
                    tensor = self._tensors[name]
                    file.seek(tensor.start)
                    content = file.read(_size(tensor))
                    self.bytes_read += len(content)
                    yield name, _unpacked(tensor, content)
        except (OSError, ValueError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> NormscopeError:
        return NormscopeError(
            FailureKind.CORRUPT,
            f"{self._target}: {self._path.name} is damaged: {error}",
            "fetch or convert the file again",
        )


def _need_gguf(target: str) -> None:
    from importlib.util import find_spec

    if find_spec("gguf") is None:
        raise NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{target}: reading the weights of GGUF needs the package gguf",
            "pip install 'normscope[gguf]'",
        )


def _layout(path: Path) -> GgufLayout:
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise DamagedGgufError("it is empty")
        with (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            memoryview(content) as view,
        ):
            return read_layout(view)


def _checked(layout: GgufLayout, file_bytes: int) -> dict[str, GgufTensor]:
    """Return the tensors by name, where each has a place of its own in the file."""
    found: dict[str, GgufTensor] = {}
    for tensor in layout.tensors:
        if tensor.name in found:
            raise DamagedGgufError(f"it lists {tensor.name} twice")
        if tensor.start + _size(tensor) > file_bytes:
            raise DamagedGgufError(f"it ends before the values of {tensor.name} do")
        found[tensor.name] = tensor
    for one, other in pairwise(sorted(layout.tensors, key=lambda tensor: tensor.start)):
        if one.start + _size(one) > other.start:
            raise DamagedGgufError(f"{one.name} and {other.name} overlap")
    return found


def _size(tensor: GgufTensor) -> int:
    """Return how many bytes the values take."""
    elements, (block, block_bytes) = math.prod(tensor.shape), _block(tensor)
    if elements % block:
        raise DamagedGgufError(f"{tensor.name} is stored in blocks that its shape does not fill")
    return elements // block * block_bytes


def _block(tensor: GgufTensor) -> tuple[int, int]:
    import gguf

    try:
        return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(tensor.kind)]
    except (ValueError, KeyError) as error:
        raise DamagedGgufError(
            f"{tensor.name} is of a type ({tensor.kind}) that the installed gguf does not know"
        ) from error


def _dtype(kind: int) -> str:
    import gguf

    plain = _PLAIN.get(kind)
    if plain is not None:
        return str(plain).removeprefix("torch.")
    return gguf.GGMLQuantizationType(kind).name.lower()


def _unpacked(tensor: GgufTensor, content: bytes) -> torch.Tensor:
    plain = _PLAIN.get(tensor.kind)
    if plain is not None:
        flat = torch.frombuffer(bytearray(content), dtype=plain) if content else torch.empty(0)
        return flat.reshape(tensor.shape)
    import gguf

    blocks: Any = np.frombuffer(content, dtype=np.uint8)
    values = gguf.dequantize(blocks, gguf.GGMLQuantizationType(tensor.kind))
    return torch.from_numpy(np.array(values)).reshape(tensor.shape)


def _eps(layout: GgufLayout, architecture: str) -> Iterator[float]:
    """Yield the eps that the metadata names, as it was before float32 was made of it."""
    for key, value in sorted(layout.metadata.items()):
        if key.startswith(f"{architecture}.attention.") and key.endswith("_epsilon"):
            yield float(str(np.float32(value)))
