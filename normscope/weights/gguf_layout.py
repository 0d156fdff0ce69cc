"""Bytes of a GGUF file -> its metadata and where its tensors lie; no value of a tensor is read."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_DIMENSIONS = 4
"""ggml's own limit."""
_ALIGNMENT = 32
"""Where the metadata names none."""
_SHORTEST_ENTRY, _SHORTEST_TENSOR = 13, 24
"""Bytes that one entry of the metadata, and of the list of tensors, takes at least."""

_SCALARS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
"""The format's numbers of types, for those of one size."""
_STRING, _ARRAY = 8, 9
_COUNT, _LENGTH = _SCALARS[4], _SCALARS[10]

Value = str | int | float | bool


class DamagedGgufError(ValueError):
    """The bytes are no whole GGUF file; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTensor:
    """One entry of the list of tensors."""

    name: str
    shape: tuple[int, ...]
    """In torch's order: ggml counts the dimension that moves fastest first."""
    kind: int
    """ggml's number of the type."""
    start: int
    """Where the values begin, from the start of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufLayout:
    """What stands before the values in a GGUF file."""

    metadata: Mapping[str, Value]
    """Without its lists: vocabularies are stepped over."""
    tensors: tuple[GgufTensor, ...]
    data_start: int


def read_layout(content: memoryview) -> GgufLayout:
    """Return what stands before the values. Raises `DamagedGgufError`."""
    cursor = _Cursor(content)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise DamagedGgufError("it does not begin with the letters GGUF")
    version = cursor.number(_COUNT)
    if version not in _VERSIONS:
        raise DamagedGgufError(f"it is of version {version}, and only 2 and 3 can be read")
    tensors = cursor.count(_SHORTEST_TENSOR, "tensors")
    entries = cursor.count(_SHORTEST_ENTRY, "entries of metadata")
    metadata = dict(_entry(cursor) for _ in range(entries))
    listed = [_tensor(cursor) for _ in range(tensors)]
    start = _aligned(cursor.position, metadata.get("general.alignment", _ALIGNMENT))
    return GgufLayout(
        metadata={key: value for key, value in metadata.items() if value is not None},
        tensors=tuple(_placed(name, shape, kind, start + at) for name, shape, kind, at in listed),
        data_start=start,
    )


class _Cursor:
    """Steps through bytes, and never past their end."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.position = 0

    def take(self, length: int) -> bytes:
        start = self.skip(length)
        return bytes(self._content[start : start + length])

    def skip(self, length: int) -> int:
        start = self.position
        if length > len(self._content) - start:
            raise DamagedGgufError("it ends within its header")
        self.position += length
        return start

    def number(self, form: struct.Struct) -> int:
        start = self.skip(form.size)
        found: int = form.unpack_from(self._content, start)[0]
        return found

    def count(self, shortest: int, what: str) -> int:
        """Return how many there are, where so many can stand in the rest of the file."""
        found = self.number(_LENGTH)
        if found * shortest > len(self._content) - self.position:
            raise DamagedGgufError(f"it is too short for the {found} {what} that it announces")
        return found

    def text(self) -> str:
        try:
            return self.take(self.number(_LENGTH)).decode()
        except UnicodeDecodeError as error:
            raise DamagedGgufError("a name in its header is not text") from error


def _entry(cursor: _Cursor) -> tuple[str, Value | None]:
    key = cursor.text()
    return key, _value(cursor, cursor.number(_COUNT))


def _value(cursor: _Cursor, kind: int) -> Value | None:
    """Return a value; None for a list, which is stepped over."""
    if kind == _STRING:
        return cursor.text()
    if kind == _ARRAY:
        _skip_list(cursor)
        return None
    if kind not in _SCALARS:
        raise DamagedGgufError(f"its metadata has a value of an unknown type ({kind})")
    return cursor.number(_SCALARS[kind])


def _skip_list(cursor: _Cursor) -> None:
    kind = cursor.number(_COUNT)
    if kind in _SCALARS:
        cursor.skip(cursor.number(_LENGTH) * _SCALARS[kind].size)
    elif kind == _STRING:
        for _ in range(cursor.count(_LENGTH.size, "texts in a list")):
            cursor.skip(cursor.number(_LENGTH))
    else:
        raise DamagedGgufError(f"its metadata has a list of an unknown type ({kind})")


def _tensor(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Return name, shape, type and place after the start of the values."""
    name = cursor.text()
    dimensions = cursor.number(_COUNT)
    if dimensions > _MOST_DIMENSIONS:
        raise DamagedGgufError(f"{name} has {dimensions} dimensions")
    shape = tuple(cursor.number(_LENGTH) for _ in range(dimensions))
    return name, shape[::-1], cursor.number(_COUNT), cursor.number(_LENGTH)


def _placed(name: str, shape: tuple[int, ...], kind: int, start: int) -> GgufTensor:
    return GgufTensor(name=name, shape=shape, kind=kind, start=start)


def _aligned(position: int, alignment: Value | None) -> int:
    if not isinstance(alignment, int) or alignment <= 0:
        raise DamagedGgufError(f"its values are aligned to {alignment} bytes")
    return math.ceil(position / alignment) * alignment
