"""Ctrl-C and SIGTERM -> KeyboardInterrupt, but never in the middle of a write."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Raises `KeyboardInterrupt` where a signal arrives, or as soon as it may."""

    def __init__(self) -> None:
        self._held = False
        self._waiting = False

    def arrived(self, _number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
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


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Treat SIGTERM like Ctrl-C while the block runs; signals reach the main thread alone."""
    interrupts = Interrupts()
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before[number] = signal.signal(number, interrupts.arrived)
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
