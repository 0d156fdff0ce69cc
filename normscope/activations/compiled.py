"""Rows on a CPU -> their moments, by the program of `rows.c`, where it was compiled.

Between the operations of a model little is in the caches of a processor, and every further function
that runs there costs more than its work: one call that reads each row once takes a fifth of the
time of the same in torch.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch

from normscope.activations.shelf import Shelf

_STORED = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
"""Data types as the program numbers them."""
_LONGEST = (1 << 31) - 1
"""The program counts the values of a row in 32 bits."""
_PLAIN = {torch.Tensor, torch.nn.Parameter}
"""Other classes do not always hold their values where they say."""


def measure_rows(rows: torch.Tensor, shelf: Shelf) -> tuple[int, float] | None:
    """Measure [..., features] on a CPU; None where there is no such program, or not for these.

    Returns the address of the moments on the shelf, and the largest peak. All of it stands in one
    function, and in few steps: see above.
    """
    stored = _STORED.get(rows.dtype)
    if stored is None or _PROGRAM is None or type(rows) not in _PLAIN:
        return None
    if not (rows.is_cpu and rows.is_contiguous()) or rows.is_neg():
        return None
    length, values = rows.shape[-1], rows.numel()
    if not values or length > _LONGEST:
        return None
    count = values // length
    address = shelf.take(count)
    return address, _PROGRAM(rows.data_ptr(), stored, count, length, address)


def was_compiled() -> bool:
    """Tell whether the program is there, for torch to be spared."""
    return _PROGRAM is not None


def _compiled() -> Callable[[int, int, int, int, int], float] | None:
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name("rows.so")))
    except OSError:
        return None  # there was no compiler, or this torch has no OpenMP
    program = library.normscope_measure_rows
    program.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    program.restype = ctypes.c_double
    found: Callable[[int, int, int, int, int], float] = program
    return found


_PROGRAM = _compiled()
