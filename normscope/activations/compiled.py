"""Rows on a CPU -> their moments, by the program of `rows.c`, where it was compiled.

Between the operations of a model little is in the caches of a processor, and every further function
that runs there costs more than its work: so each row is read once, in one call, and with as few
steps of Python as can be (`tests/benchmarks/stats_overhead.py` compares it with torch).
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch

from normscope.activations.shelf import BYTES_A_ROW, Shelf

_Program = Callable[[int, int | None, int, int, int, int], float]
"""Addresses of one activation or two, data type, rows, features, address of the moments."""
_STORED = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
"""Data types as the program numbers them."""
_LONGEST = (1 << 31) - 1
"""The program counts the values of a row in 32 bits."""
_PLAIN = {torch.Tensor, torch.nn.Parameter}
"""Other classes do not always hold their values where they say."""


def measure_rows(rows: torch.Tensor, shelf: Shelf) -> tuple[int, float] | None:
    """Measure [..., features] on a CPU; None where there is no such program, or not for these.

    Returns the address of the moments on the shelf, and the largest peak.
    """
    if _PROGRAM is None or not _is_readable(rows):
        return None
    length = rows.shape[-1]
    count = rows.numel() // length
    address = shelf.take(count)
    return address, _PROGRAM(rows.data_ptr(), None, _STORED[rows.dtype], count, length, address)


def measure_pair(
    one: torch.Tensor, other: torch.Tensor, shelf: Shelf
) -> tuple[int, int, float] | None:
    """Measure two activations of one shape and data type as `measure_rows` does each.

    Returns the addresses of the moments of both, and the largest peak of both. It asks in one
    function what `_is_readable` does, for the reason above.
    """
    shape, stored = one.shape, _STORED.get(one.dtype)
    length, values = shape[-1], one.numel()
    if (
        stored is None
        or _PROGRAM is None
        or type(one) not in _PLAIN
        or type(other) not in _PLAIN
        or other.shape != shape
        or other.dtype is not one.dtype
        or not (one.is_cpu and one.is_contiguous() and other.is_cpu and other.is_contiguous())
        or one.is_neg()
        or other.is_neg()
        or not values > 0
        or length > _LONGEST
    ):
        return None
    count = values // length
    places = (one.data_ptr(), other.data_ptr())
    if not all(places):
        return None  # zeros that were never written
    address = shelf.take(2 * count)
    largest = _PROGRAM(*places, stored, count, length, address)
    return address, address + BYTES_A_ROW * count, largest


def _is_readable(rows: torch.Tensor) -> bool:
    """Tell whether the values are in memory, row after row, in a type that the program knows."""
    return (
        type(rows) in _PLAIN
        and rows.dtype in _STORED
        and rows.is_cpu
        and rows.is_contiguous()
        and not rows.is_neg()
        and rows.numel() > 0
        and rows.shape[-1] <= _LONGEST
        and rows.data_ptr() != 0  # as of zeros that were never written
    )


def knows(dtype: torch.dtype) -> bool:
    """Tell whether values of a type can be measured here."""
    return _PROGRAM is not None and dtype in _STORED


def was_compiled() -> bool:
    """Tell whether the program is there; `.ci/run` and the tests ask."""
    return _PROGRAM is not None


def _compiled() -> _Program | None:
    try:
        library = ctypes.CDLL(str(Path(__file__).with_name("rows.so")))
        program = library.normscope_measure_rows_1
    except (OSError, AttributeError):
        return None  # no compiler was there, torch has no such OpenMP, or it is of another version
    program.argtypes = (
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    program.restype = ctypes.c_double
    found: _Program = program
    return found


_PROGRAM = _compiled()
