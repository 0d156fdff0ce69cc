"""Room for the moments of rows, in a few large pieces of memory, until a forward pass is over.

Left where they were allocated, between the large temporary values of a model, small arrays would
keep the allocator from using that memory again: a fifth of the peak of BERT. So would the few bytes
that NumPy allocates for the shape of each array, so that arrays are made when they are read.
"""

import ctypes
import mmap
from dataclasses import dataclass, field

import numpy as np

BYTES_OF_A_ROW = 4 * 8
"""Of its four moments."""
_PIECE = 1 << 20
"""Bytes of a usual piece."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where the moments of some rows lie: mean, variance, peak, and the place of the peak."""

    shelf: "Shelf"
    address: int
    rows: int

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a copy of the four columns, [rows] each: three of float64, one of int64."""
        mean, variance, peak, place = self.words().reshape(4, self.rows).copy()
        return mean, variance, peak, place.view(np.int64)

    def words(self) -> np.ndarray:
        """Return the columns, one after the other, as they lie there."""
        pointer = ctypes.cast(self.address, ctypes.POINTER(ctypes.c_double))
        return np.ctypeslib.as_array(pointer, (4 * self.rows,))


@dataclass(slots=True)
class Shelf:
    """Memory for what one forward pass leaves; the next one gets the same."""

    _pieces: list[mmap.mmap] = field(default_factory=list)
    _opened: int = 0
    """How many of the pieces are in use."""
    _next: int = 0
    """Address of what is free in the last of them, up to `_end`."""
    _end: int = 0

    def take(self, rows: int) -> int:
        """Return the address of four columns of so many numbers of 64 bits."""
        address = self._next
        self._next = address + BYTES_OF_A_ROW * rows
        return address if self._next <= self._end else self._take_elsewhere(rows)

    def _take_elsewhere(self, rows: int) -> int:
        while self._next > self._end:
            if self._opened == len(self._pieces):
                self._pieces.append(_new_piece(max(_PIECE, BYTES_OF_A_ROW * rows)))
            piece = self._pieces[self._opened]
            self._opened += 1
            address = ctypes.addressof(ctypes.c_char.from_buffer(piece))
            self._next, self._end = address + BYTES_OF_A_ROW * rows, address + len(piece)
        return address

    def clear(self) -> None:
        """Give the memory of every room to others."""
        self._opened = self._next = self._end = 0


def _new_piece(size: int) -> mmap.mmap:
    """Take memory from the system itself: the allocator would put it between a model's values."""
    return mmap.mmap(-1, size)
