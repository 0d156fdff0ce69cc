"""Room for the moments of rows, in a few large pieces of memory, until a forward pass is over.

Left where they were allocated, between the large temporary values of a model, small arrays would
keep the allocator from using that memory again: a fifth of the peak of BERT. So would the few bytes
that NumPy allocates for the shape of each array; arrays are made only when they are read.
"""

import ctypes
import mmap
from dataclasses import dataclass, field

import numpy as np

BYTES_A_ROW = 4 * 8
"""Of its mean, its variance, its peak, and the place of that."""
_PIECE = 1 << 20
"""Bytes of a usual piece."""


@dataclass(slots=True)
class _Piece:
    """Memory of the system itself: the allocator's would lie between a model's values."""

    memory: mmap.mmap
    start: int
    """Its address."""
    end: int
    next: int
    """Address of what is free."""

    @classmethod
    def new(cls, size: int) -> "_Piece":
        # A copy of this process gets a copy of it, unlike what mmap gives by itself.
        memory = mmap.mmap(-1, size, access=mmap.ACCESS_COPY)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return cls(memory, start, start + size, start)


@dataclass(frozen=True, slots=True)
class Room:
    """Where the moments of some rows lie: mean, variance, peak, and the place of the peak."""

    shelf: "Shelf"
    address: int
    rows: int

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a copy of the four columns, [rows] each: three of float64, one of int64."""
        mean, variance, peak, place = self.words().copy()
        return mean, variance, peak, place.view(np.int64)

    def words(self) -> np.ndarray:
        """Return the four columns, [4, rows], as they lie there."""
        piece = self.shelf.piece_at(self.address)
        offset = self.address - piece.start
        return np.ndarray((4, self.rows), np.float64, buffer=piece.memory, offset=offset)


@dataclass(slots=True)
class Shelf:
    """Memory for what one forward pass leaves; the next one gets the same.

    It is one thread's. Two at once may overwrite each other's moments, but no other memory.
    """

    _pieces: list[_Piece] = field(default_factory=list)
    _open: _Piece | None = None

    def take(self, rows: int) -> int:
        """Return the address of four columns of so many numbers of 64 bits."""
        piece = self._open
        if piece is not None:
            address = piece.next
            end = address + BYTES_A_ROW * rows
            if end <= piece.end:
                piece.next = end
                return address
        return self._take_elsewhere(BYTES_A_ROW * rows)

    def _take_elsewhere(self, size: int) -> int:
        for piece in self._pieces:
            if piece.next == piece.start and piece.start + size <= piece.end:
                break
        else:
            piece = _Piece.new(max(_PIECE, size))
            self._pieces.append(piece)
        self._open = piece
        piece.next = piece.start + size
        return piece.start

    def piece_at(self, address: int) -> _Piece:
        """Return the piece in which an address lies."""
        return next(piece for piece in self._pieces if piece.start <= address < piece.end)

    def clear(self) -> None:
        """Give the memory of every room to others, and let go of what was not used."""
        self._pieces = [piece for piece in self._pieces if piece.next != piece.start]
        for piece in self._pieces:
            piece.next = piece.start
        self._open = None
