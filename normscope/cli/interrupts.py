"""Ctrl-C and SIGTERM -> KeyboardInterrupt, but never in the middle of a write."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Raises `KeyboardInterrupt` where a signal arrives, or as soon as it may."""

    def __init__(self) -> None:
        self.arrived_once = False
        self._held = False
        self._waiting = False

    def arrived(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        self.arrived_once = True
        if self._held:
            self._waiting = True
            return
        raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let signals wait until the block is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt


_current: ContextVar[Interrupts | None] = ContextVar("current", default=None)


def stopped() -> bool:
    """Tell whether a signal has arrived, also one that a library took for an error of its own."""
    current = _current.get()
    return current is not None and current.arrived_once


@contextmanager
def held_back() -> Iterator[None]:
    """Let signals wait until the block is done, where they interrupt at all."""
    current = _current.get()
    with nullcontext() if current is None else current.held():
        yield


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Treat SIGTERM like Ctrl-C while the block runs; signals reach the main thread alone."""
    interrupts, outer = Interrupts(), _current.get()
    _current.set(interrupts)
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before[number] = signal.signal(number, interrupts.arrived)
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _current.set(outer)
