"""What is looked up on disk -> the same again, where a run says that code does not change in it."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Found = TypeVar("Found")

_seen: ContextVar[dict[Hashable, Any] | None] = ContextVar("seen", default=None)


@contextmanager
def code_stays() -> Iterator[None]:
    """Look at each folder of code once while the block runs.

    What is loaded then is what was there at the beginning, whatever is edited meanwhile.
    """
    before = _seen.get()
    _seen.set({} if before is None else before)
    try:
        yield
    finally:
        _seen.set(before)


def looked_up(what: Hashable, look: Callable[[], Found]) -> Found:
    """Return what `look` finds, or has found of `what` since `code_stays` began."""
    seen = _seen.get()
    if seen is None:
        return look()
    if what not in seen:
        seen[what] = look()
    found: Found = seen[what]
    return found
