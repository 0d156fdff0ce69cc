"""A signal before any line of some files that a call runs: at every moment, in one process."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interruption:
    """Sends a signal to this process before the line number `at` of those in `files` that run."""

    def __init__(self, at: int, files: tuple[str, ...], number: signal.Signals) -> None:
        self.at = at
        self.sent = False
        self._files = files
        self._number = number
        self._seen = 0

    def run(self, call: Callable[[], Any]) -> Any:
        """Return what `call` returns; raises what it raises."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._line if frame.f_code.co_filename.endswith(self._files) else None

    def _line(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line" and not self.sent:
            self._seen += 1
            if self._seen == self.at:
                self.sent = True
                os.kill(os.getpid(), self._number)
        return self._line


def moments(limit: int = 2000) -> range:
    """Return the numbers of lines to try: the caller stops when a run ends before the signal."""
    return range(1, limit)
