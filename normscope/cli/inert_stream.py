"""What others print -> lines on a stream that steer neither a terminal nor a runner."""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from normscope.cli.output import encodable
from normscope.render.inert import inert_line
from normscope.render.visible import visible


class InertStream(io.TextIOBase):
    """Writes whole lines to another stream, and what is begun of one when it is flushed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute
        """Of the other stream."""
        return self._stream.encoding or "utf-8"

    def writable(self) -> bool:
        """Say yes."""
        return True

    def fileno(self) -> int:
        """Return the other stream's."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Take a piece, and pass on the lines that it ends."""
        *lines, self._begun = (self._begun + text).split("\n")
        self._pass_on("".join(f"{inert_line(visible(line))}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Pass on what is there of a line."""
        begun, self._begun = self._begun, ""
        self._pass_on(inert_line(visible(begun)))

    def _pass_on(self, text: str) -> None:
        with suppress(OSError, ValueError):  # of a closed stream: there is no one to tell
            if text:
                self._stream.write(encodable(text, self._stream))
                self._stream.flush()


@contextmanager
def logs_through(place: io.TextIOBase, stream: TextIO) -> Iterator[None]:
    """Have the log handlers of a stream, which libraries make once, write to another.

    So are those that were made while such a block ran.
    """
    moved = [
        (handler, handler.stream)
        for handler in _handlers()
        if handler.stream in (stream, sys.__stderr__) or isinstance(handler.stream, InertStream)
    ]
    for handler, _ in moved:
        handler.setStream(place)
    try:
        yield
    finally:
        for handler, before in moved:
            handler.setStream(before)


def _handlers() -> Iterator["logging.StreamHandler[TextIO | io.TextIOBase]"]:
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            for handler in logger.handlers:
                if isinstance(handler, logging.StreamHandler):
                    yield handler
