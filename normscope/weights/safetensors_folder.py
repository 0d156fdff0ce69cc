"""A folder's safetensors files -> its tensors: headers alone, or the values that are asked for."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.weights.files import WeightFiles
from normscope.weights.names import LoadedByName
from normscope.weights.stored import Container, Renaming, StoredTensor

LENGTH_BYTES = 8
"""Bytes of the header's length, little-endian, at the start of a safetensors file."""

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
"""The format's names of types, in torch's words."""


class SafetensorsFolder:
    """One safetensors file, or the shards that an index lists."""

    container = Container.SAFETENSORS

    def __init__(self, target: str, files: WeightFiles) -> None:
        self.files = len(files.paths)
        self.file_bytes = sum(path.stat().st_size for path in files.paths)
        self.bytes_read = 0
        self.stated_eps: tuple[float, ...] = ()
        self._target = target
        self._files = files
        self._places: dict[str, Path] = {}

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors; refuses a tensor that is listed twice, and an index that lies."""
        found: dict[str, StoredTensor] = {}
        for path in self._files.paths:
            self.bytes_read += _header_size(self._target, path)
            for tensor in _described(self._target, path):
                if tensor.name in found:
                    first = found[tensor.name].file
                    raise _corrupt(self._target, path, f"holds {tensor.name}, and so does {first}")
                found[tensor.name] = tensor
                self._places[tensor.name] = path
        check_index(self._target, self._files.listed, found)
        return found

    def renaming(self, module: nn.Module) -> Renaming:
        """Return how transformers takes the tensors into `module`."""
        return LoadedByName(module)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the named tensors, a file at a time."""
        for path, group in groupby(sorted(set(names), key=self._place), key=self._places.get):
            try:
                with safe_open(path, "pt") as file:
                    for name in group:
                        value = file.get_tensor(name)
                        self.bytes_read += value.numel() * value.element_size()
                        yield name, value
            except (SafetensorError, OSError) as error:
                raise _damaged(self._target, path or Path(), error) from error

    def _place(self, name: str) -> tuple[str, str]:
        return str(self._places[name]), name


def _header_size(target: str, path: Path) -> int:
    """Return how many bytes the header takes, and refuse one that says a name twice."""
    try:
        with safe_open(path, "numpy"), path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            read_object(file.read(length))
    except TwiceError as error:
        raise _corrupt(target, path, str(error)) from error
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise _damaged(target, path, error) from error
    return LENGTH_BYTES + length


class TwiceError(ValueError):
    """A header has the same name twice."""


def read_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a header; safetensors accepts a doubled name, this does not.

    Raises `ValueError` for what is no object.
    """
    found = json.loads(text, object_pairs_hook=_once)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  # of the file, not of a caller
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise TwiceError(f"lists {name} twice")
        found[name] = value
    return found


def _described(target: str, path: Path) -> Iterator[StoredTensor]:
    try:
        with safe_open(path, "numpy") as file:
            for name in file.keys():  # noqa: SIM118  # the object is no mapping
                part = file.get_slice(name)
                dtype = part.get_dtype()
                yield StoredTensor(
                    name=name,
                    dtype=DTYPES.get(dtype, dtype.lower()),
                    shape=tuple(part.get_shape()),
                    file=path.name,
                )
    except (SafetensorError, OSError) as error:
        raise _damaged(target, path, error) from error


def check_index(
    target: str, listed: Mapping[str, str] | None, tensors: Mapping[str, StoredTensor]
) -> None:
    """Refuse an index that names a tensor which no file holds."""
    for name, file in (listed or {}).items():
        if name not in tensors:
            raise NormscopeError(
                FailureKind.CORRUPT,
                f"{target}: the index places {name} in {file}, which does not hold it",
                "fetch or save the checkpoint again",
            )


def _corrupt(target: str, path: Path, what: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.CORRUPT, f"{target}: {path.name} {what}", "save the checkpoint again"
    )


def _damaged(target: str, path: Path, error: Exception) -> NormscopeError:
    reason = str(error).removeprefix("Error while deserializing header: ")
    return NormscopeError(
        FailureKind.CORRUPT,
        f"{target}: {path.name} is damaged: {reason}",
        "fetch or save the checkpoint again",
    )
