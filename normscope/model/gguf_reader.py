"""gguf's reader -> one that steps over the texts of vocabularies, for whoever wants the rest.

gguf 0.19 makes several arrays of every text of a list: 19 seconds for the 128,256 tokens and
280,147 merges of Llama 3, whose config needs no more of them than their number.
"""

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_LONG = 4096
"""Elements from which a list is a vocabulary's; those of layers are shorter."""
_PREFIX = struct.Struct("<IQ")
_LENGTH = struct.Struct("<Q")


@contextmanager
def short_lists() -> Iterator[None]:
    """Give transformers a reader for which the elements of a long list are all the same."""
    import gguf

    usual = gguf.GGUFReader
    package: Any = gguf
    package.GGUFReader = short_reader()
    try:
        yield
    finally:
        package.GGUFReader = usual


def short_reader() -> Any:
    """Return gguf's class with long lists made short."""
    from gguf import GGUFReader, GGUFValueType

    usual: Any = GGUFReader

    class ShortReader(usual):  # type: ignore[misc]
        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            is_native = self.byte_order == "I" and sys.byteorder == "little"
            if raw_type == GGUFValueType.ARRAY and is_native:
                found = self._short(int(orig_offs))
                if found is not None:
                    return found
            return super()._get_field_parts(orig_offs, raw_type)

        def _short(self, start: int) -> tuple[int, list[Any], list[int], list[Any]] | None:
            content = memoryview(self.data)
            kind, count = _PREFIX.unpack_from(content, start)
            if count < _LONG:
                return None
            kind = GGUFValueType(kind)
            first = start + _PREFIX.size
            if kind == GGUFValueType.STRING:
                one, end = np.empty(0, dtype=np.uint8), _end_of_texts(content, first, count)
            elif kind in self.gguf_scalar_to_np:
                one = self._get(first, self.gguf_scalar_to_np[kind])
                end = first + count * one.itemsize
            else:
                return None
            types = [GGUFValueType.ARRAY, kind]
            return end - start, [one], [0] * count, types

    return ShortReader


def _end_of_texts(content: memoryview, position: int, count: int) -> int:
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(content, position)
        position += _LENGTH.size + length
    return position
