"""A folder's pickled files -> its tensors, through torch's loader that runs no code of the file."""

import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.weights.files import WeightFiles
from normscope.weights.names import LoadedByName
from normscope.weights.stored import Container, Renaming, StoredTensor


class PickledFolder:
    """`pytorch_model.bin`, whole or in shards; read with `weights_only` and never otherwise.

    Tensors are mapped from the file where its format allows, else a whole shard is read.
    """

    container = Container.PICKLED

    def __init__(self, target: str, files: WeightFiles) -> None:
        self.files = len(files.paths)
        self.file_bytes = sum(path.stat().st_size for path in files.paths)
        self.bytes_read = 0
        self.stated_eps: tuple[float, ...] = ()
        self._target = target
        self._files = files
        self._places: dict[str, Path] = {}

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors; of their values nothing is kept."""
        found: dict[str, StoredTensor] = {}
        for path in self._files.paths:
            for name, value in _tensors(self._load(path, "meta")):
                found[name] = StoredTensor(
                    name=name,
                    dtype=str(value.dtype).removeprefix("torch."),
                    shape=tuple(value.shape),
                    file=path.name,
                )
                self._places[name] = path
        return found

    def renaming(self, module: nn.Module) -> Renaming:
        """Return how transformers takes the tensors into `module`."""
        return LoadedByName(module)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the named tensors, a file at a time."""
        wanted = frozenset(names)
        for path in self._files.paths:
            if any(self._places.get(name) == path for name in wanted):
                for name, value in _tensors(self._load(path, "cpu")):
                    if name in wanted:
                        self.bytes_read += value.numel() * value.element_size()
                        yield name, value.clone()

    def _load(self, path: Path, device: str) -> Any:
        try:
            try:
                return torch.load(path, weights_only=True, map_location=device, mmap=True)
            except RuntimeError:  # an older format, which cannot be mapped
                self.bytes_read += path.stat().st_size
                return torch.load(path, weights_only=True, map_location=device)
        except pickle.UnpicklingError as error:
            raise NormscopeError(
                FailureKind.UNSAFE_WEIGHTS,
                f"{self._target}: {path.name} holds more than tensors, and loading it could run "
                "code",
                "convert it to safetensors where its origin is trusted",
            ) from error
        except (RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
            raise NormscopeError(
                FailureKind.CORRUPT,
                f"{self._target}: {path.name} is damaged: {type(error).__name__}",
                "fetch or save the checkpoint again",
            ) from error


def _tensors(content: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(content, Mapping):
        yield from (
            (str(name), value) for name, value in content.items() if isinstance(value, torch.Tensor)
        )
