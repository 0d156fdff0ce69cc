"""When Python looks for objects that only hold each other: between targets, not within one.

Importing torch and transformers makes a million objects that stay. A full collection goes through
all of them, and a handful of collections took a sixth of the time of an answer.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = 1_000
"""Collections of younger objects (10 is Python's own number) before a full one."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Put off full collections while the block runs; younger objects are collected as ever."""
    young, middle, full = gc.get_threshold()
    gc.set_threshold(young, middle, _RARELY)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, full)


def collect_now() -> None:
    """Free what the last target left behind; what is still in use is not looked at again."""
    gc.collect()
    gc.freeze()
