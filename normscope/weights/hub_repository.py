"""A repository of the Hub -> its tensors: only headers and the values asked for are fetched."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.hub import Repository, file_range, repository_file
from normscope.weights.files import SINGLE, read_weight_map
from normscope.weights.names import LoadedByName
from normscope.weights.safetensors_folder import (
    DTYPES,
    LENGTH_BYTES,
    TwiceError,
    check_index,
    read_object,
)
from normscope.weights.stored import Container, Renaming, StoredTensor

_FIRST = 1 << 15
"""Bytes that are asked for at once: the whole header of most shards."""
_LONGEST = 100_000_000
"""safetensors reads no longer header."""
_GAP = 1 << 14
"""Tensors that lie no further apart are fetched by one request."""
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a tensor's bytes lie."""

    tensor: StoredTensor
    start: int
    stop: int


class HubRepository:
    """The safetensors files of a repository, read by ranges of bytes."""

    container = Container.SAFETENSORS

    def __init__(
        self, repository: Repository, names: Sequence[str], listed: Mapping[str, str] | None = None
    ) -> None:
        self.files = len(names)
        self.file_bytes = 0
        self.bytes_read = 0
        self.stated_eps: tuple[float, ...] = ()
        self._repository = repository
        self._names = names
        self._listed = listed
        self._places: dict[str, _Place] = {}

    def describe(self) -> Mapping[str, StoredTensor]:
        """Return all tensors; refuses one that is listed twice, and an index that lies."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for places, size, read in threads.map(self._header, self._names):
                self._add(places)
                self.file_bytes += size
                self.bytes_read += read
        found = {name: place.tensor for name, place in self._places.items()}
        check_index(self._repository.target, self._listed, found)
        return found

    def _add(self, places: Iterable[_Place]) -> None:
        for place in places:
            tensor = place.tensor
            known = self._places.setdefault(tensor.name, place).tensor
            if known is not tensor:
                raise self._damaged(
                    tensor.file, f"it holds {tensor.name}, and so does {known.file}"
                )

    def _header(self, name: str) -> tuple[list[_Place], int, int]:
        """Return the tensors of one file, its size, and how many bytes of it were fetched."""
        first = self._range(name, 0, _FIRST)
        length = int.from_bytes(first[0][:LENGTH_BYTES], "little")
        end = LENGTH_BYTES + length
        content, size = first
        if not LENGTH_BYTES <= end <= min(size, _LONGEST):
            raise self._damaged(name, "its header is longer than the file")
        read = len(content)
        if end > len(content):
            rest, _ = self._range(name, len(content), end)
            content, read = content + rest, end
        try:
            described = read_object(content[LENGTH_BYTES:end])
            places = list(_places(described, name, end))
        except TwiceError as error:
            raise self._damaged(name, f"it {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged(name, "its header cannot be read") from error
        for wrong in _wrong(places, end, size):
            raise self._damaged(name, wrong)
        return places, size, read

    def renaming(self, module: nn.Module) -> Renaming:
        """Return how transformers takes the tensors into `module`."""
        return LoadedByName(module)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the named tensors; those that lie close together come by one request."""
        places = sorted((self._places[name] for name in set(names)), key=_order)
        groups = list(_neighbours(places))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for group, content in zip(groups, threads.map(self._bytes, groups), strict=True):
                self.bytes_read += len(content)
                for place in group:
                    offset = place.start - group[0].start
                    yield place.tensor.name, _tensor(place, content[offset:])

    def _bytes(self, group: Sequence[_Place]) -> bytes:
        start, stop = group[0].start, max(place.stop for place in group)
        return self._range(group[0].tensor.file, start, stop)[0] if stop > start else b""

    def _range(self, name: str, start: int, stop: int) -> tuple[bytes, int]:
        found = file_range(self._repository, name, start, stop)
        if found is None:
            raise self._damaged(name, "it is missing from the repository")
        return found.content, found.size

    def _damaged(self, name: str, what: str) -> NormscopeError:
        return NormscopeError(
            FailureKind.CORRUPT,
            f"{self._repository.target}: {name} is damaged: {what}",
            "tell the owner of the repository, or name another revision",
        )


def open_repository(repository: Repository) -> HubRepository | None:
    """Return the repository's tensors; None where it has no safetensors files."""
    index = repository_file(repository, f"{SINGLE}.index.json")
    if index is not None:
        listed = read_weight_map(repository.target, index)
        return HubRepository(repository, sorted(set(listed.values())), listed)
    if file_range(repository, SINGLE, 0, LENGTH_BYTES) is None:
        return None
    return HubRepository(repository, (SINGLE,))


def _places(described: Mapping[str, Any], name: str, data: int) -> Iterator[_Place]:
    for tensor, facts in described.items():
        if tensor == "__metadata__":
            continue
        start, stop = facts["data_offsets"]
        yield _Place(
            tensor=StoredTensor(
                name=tensor,
                dtype=DTYPES.get(facts["dtype"], str(facts["dtype"]).lower()),
                shape=tuple(int(size) for size in facts["shape"]),
                file=name,
            ),
            start=data + int(start),
            stop=data + int(stop),
        )


def _wrong(places: Sequence[_Place], data: int, size: int) -> Iterator[str]:
    """Yield what cannot be right of where the tensors of one file lie."""
    for place in places:
        name, dtype = place.tensor.name, getattr(torch, place.tensor.dtype, None)
        if not data <= place.start <= place.stop <= size:
            yield f"{name} lies outside of it"
        elif isinstance(dtype, torch.dtype):
            length = math.prod(place.tensor.shape) * dtype.itemsize
            if length != place.stop - place.start:
                yield f"the values of {name} do not fill its shape"
    for one, other in pairwise(sorted(places, key=_order)):
        if one.stop > other.start:
            yield f"{one.tensor.name} and {other.tensor.name} overlap"


def _order(place: _Place) -> tuple[str, int]:
    return place.tensor.file, place.start


def _neighbours(places: Sequence[_Place]) -> Iterator[list[_Place]]:
    for _, in_file in groupby(places, key=lambda place: place.tensor.file):
        group: list[_Place] = []
        for place in in_file:
            if group and place.start - max(other.stop for other in group) > _GAP:
                yield group
                group = []
            group.append(place)
        yield group


def _tensor(place: _Place, content: bytes) -> torch.Tensor:
    dtype = getattr(torch, place.tensor.dtype)
    raw = bytearray(content[: place.stop - place.start])
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(place.tensor.shape)
