"""Rows on a CPU -> sum, norm and peak of each, in passes that all threads share.

Every pass is one operation of torch: each thread reads the rows that its own cache holds since they
were computed. One thread that reads alone fetches them from the other caches, which takes longer
than four passes, and meanwhile the other threads fall asleep. Between two operations of the model
the interpreter is slow as well, so that what can wait is left for later.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from normscope.activations.shelf import Shelf, Shelved, unshelved

_INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}
_SPARE_BITS = {torch.bfloat16: 16, torch.float16: 13}
"""Low bits of a float32 that an upcast value leaves zero."""
_BLOCKS = (128, 192, 96, 256, 64)
"""Columns that are searched together, the quickest widths first."""


@dataclass(slots=True)
class BlockPeak:
    """The largest magnitude of each block of columns of each row, and where one stands in it.

    A magnitude is the bits of a float without its sign: as integers they have the same order, NaN
    above infinity, and are compared as fast as memory gives them.
    """

    magnitudes: np.ndarray | Shelved
    """[rows, blocks]."""
    block: np.ndarray | Shelved
    """The first block with the largest of its row."""
    within: np.ndarray | Shelved
    """Its first place in that block."""
    width: int

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the largest absolute value of each row and its first place."""
        bits = unshelved(self.magnitudes).max(-1)
        value = bits.view(np.float32 if bits.dtype == np.int32 else np.float64)
        place = unshelved(self.block) * self.width + unshelved(self.within)
        return torch.from_numpy(value), torch.from_numpy(place)

    def move_to(self, shelf: Shelf) -> None:
        """Hold on to no memory but the shelf's."""
        self.magnitudes = shelf.keep(self.magnitudes)
        self.block, self.within = shelf.keep(self.block), shelf.keep(self.within)


@dataclass(slots=True)
class KeyPeak:
    """Value and place of each row's peak in one integer: see `_take_key`."""

    key: np.ndarray | Shelved
    spare: int

    def value_and_place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the largest absolute value of each row, in float32, and its first place."""
        doubled = unshelved(self.key).astype(np.int64) - np.iinfo(np.int32).min
        low = (2 << self.spare) - 1
        value = ((doubled & ~low) >> 1).astype(np.int32).view(np.float32)
        return torch.from_numpy(value), torch.from_numpy(low - (doubled & low))

    def move_to(self, shelf: Shelf) -> None:
        """Hold on to no memory but the shelf's."""
        self.key = shelf.keep(self.key)


@dataclass(slots=True)
class Passes:
    """What the passes over [rows, features] found, one entry a row."""

    total: torch.Tensor
    norm: torch.Tensor
    """Root of the sum of squares."""
    peak: BlockPeak | KeyPeak


def take_passes(rows: torch.Tensor) -> Passes:
    """Return sum, norm and peak of each row; half precision is upcast to float32."""
    spare = _SPARE_BITS.get(rows.dtype)
    wide = rows if spare is None else rows.float()
    total, norm = wide.sum(-1), torch.linalg.vector_norm(wide, 2, -1)
    if spare is None or rows.shape[-1] > 2 << spare:
        return Passes(total, norm, _take_blocks(wide))
    return Passes(total, norm, _take_key(wide, spare))


def _take_key(wide: torch.Tensor, spare: int) -> KeyPeak:
    """Find value and place in one pass: the place stands in the bits that upcasting left zero.

    `wide` is overwritten.
    """
    bits = wide.view(torch.int32)
    # Doubled, an integer loses the sign; what is added makes signed order that of unsigned ones.
    keys = torch.add(_places(wide.shape[-1], spare), bits, alpha=2, out=bits)
    return KeyPeak(keys.amax(-1).numpy(), spare)


@lru_cache(maxsize=64)
def _places(length: int, spare: int) -> torch.Tensor:
    """Return what is added for each place: the first weighs most, so that it wins a tie."""
    last = torch.iinfo(torch.int32).min + (2 << spare) - 1
    return torch.arange(last, last - length, -1, dtype=torch.int32)


def _take_blocks(rows: torch.Tensor) -> BlockPeak:
    """Find the largest of each block of columns, then search one block a row."""
    count, length = rows.shape
    width = _block_width(length)
    blocks = rows.view(count, -1, width)
    # Negative floats are negative integers, in the opposite order.
    positive = blocks.view(_INTEGERS[rows.dtype]).amax(2).numpy()
    magnitudes = _magnitudes(blocks.amin(2))
    block = np.maximum(positive, magnitudes, out=magnitudes).argmax(-1)
    chosen = torch.from_numpy(_first_blocks(count, length // width) + block)
    searched = rows.view(-1, width).index_select(0, chosen)
    return BlockPeak(magnitudes, block, _magnitudes(searched).argmax(-1), width)


def _magnitudes(values: torch.Tensor) -> np.ndarray:
    """Return the bits of values that are nobody else's, without their signs."""
    integer = _INTEGERS[values.dtype]
    bits = values.view(integer).numpy()
    bits &= torch.iinfo(integer).max
    return bits


@lru_cache(maxsize=64)
def _block_width(length: int) -> int:
    return next((width for width in _BLOCKS if length % width == 0), length)


@lru_cache(maxsize=8)
def _first_blocks(count: int, blocks: int) -> np.ndarray:
    return np.arange(0, count * blocks, blocks)
