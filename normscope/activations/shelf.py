"""Small arrays -> the same in a few large pieces of memory, until a forward pass is over.

Left where they were allocated, between the large temporary values of a model, they would keep the
allocator from using that memory again: a fifth of the peak of BERT. So would the few bytes that
NumPy allocates for the shape of each array, so that arrays are made again when they are read.
"""

import mmap
from dataclasses import dataclass, field

import numpy as np

_PIECE = 1 << 20
_ALIGNED = 64


def _new_piece(size: int) -> np.ndarray:
    """Take memory from the system itself: the allocator would put it between a model's values."""
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)


@dataclass(slots=True)
class Shelved:
    """Where an array lies on a shelf."""

    piece: np.ndarray
    start: int
    nbytes: int
    dtype: np.dtype
    shape: tuple[int, ...]


@dataclass(slots=True)
class Shelf:
    """Memory for what one forward pass leaves."""

    _piece: np.ndarray = field(default_factory=lambda: _new_piece(_PIECE))
    _used: int = 0

    def keep(self, value: np.ndarray | Shelved) -> Shelved:
        """Copy an array to where it holds on to nothing else."""
        array = unshelved(value)
        if self._used + array.nbytes > len(self._piece):
            self._piece, self._used = _new_piece(max(_PIECE, array.nbytes)), 0
        kept = Shelved(self._piece, self._used, array.nbytes, array.dtype, array.shape)
        unshelved(kept)[...] = array
        self._used = -(-(self._used + array.nbytes) // _ALIGNED) * _ALIGNED
        return kept


def unshelved(value: np.ndarray | Shelved) -> np.ndarray:
    """Return an array, wherever it lies."""
    if isinstance(value, np.ndarray):
        return value
    kept = value.piece[value.start : value.start + value.nbytes]
    return kept.view(value.dtype).reshape(value.shape)
