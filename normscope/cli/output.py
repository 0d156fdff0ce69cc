"""The only writer: results to stdout or to a file, everything else to stderr."""

import errno
import os
import shutil
import sys
from codecs import lookup
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TextIO

from normscope.errors import UsageError
from normscope.files import replace_file as replace_file
from normscope.render.page import PLAIN, Page
from normscope.render.visible import visible


class ReaderGoneError(Exception):
    """The reader of stdout has closed the pipe: there is no one left to answer."""


class Output(Protocol):
    """Where the results of one command go."""

    page: Page
    """What the results are laid out for."""

    def write(self, text: str) -> None:
        """Write one piece of the results."""


@contextmanager
def open_output(path: Path | None) -> Iterator[Output]:
    """Give the place for results: stdout, or with a path a file that is whole or not there.

    A file is put in place when the block ends without an error. Raises `UsageError` where the
    path cannot be written, before any work is done if that can be known.
    """
    if path is None or str(path) == "-":
        yield StandardOutput(sys.stdout)
        return
    check_destination(path)
    output = FileOutput(path)
    yield output
    output.commit()


def say(text: str) -> None:
    """Write one line about the work, never a result, to stderr."""
    with suppress(OSError):  # nothing is left to tell of it where stderr is closed
        sys.stderr.write(encodable(f"{text}\n", sys.stderr))
        sys.stderr.flush()


class StandardOutput:
    """Results to a stream, each piece as soon as it is known."""

    def __init__(self, stream: TextIO) -> None:
        self.page = page_of(stream, os.environ)
        self._stream = stream

    def write(self, text: str) -> None:
        """Write and flush; raises `ReaderGoneError` on a closed pipe, `UsageError` otherwise."""
        try:
            self._stream.write(encodable(text, self._stream))
            self._stream.flush()
        except OSError as error:
            drop_buffered(self._stream)
            if error.errno == errno.EPIPE:
                raise ReaderGoneError from error
            raise UsageError(f"cannot write the results: {error.strerror}") from error


class FileOutput:
    """Results to a file that appears whole when the command is done, or not at all."""

    page = PLAIN

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """Keep the piece until `commit`."""
        self._pieces.append(text)

    def commit(self) -> None:
        """Put the file in place; raises `UsageError` where that cannot be done."""
        content = "".join(self._pieces).encode("utf-8", "backslashreplace")
        try:
            if self._path.exists() and not self._path.is_file():
                self._path.write_bytes(content)
            else:
                replace_file(self._path, content)
        except OSError as error:
            raise UsageError(f"cannot write {self._path}: {error.strerror}") from error


def page_of(stream: TextIO, environment: Mapping[str, str]) -> Page:
    """Return the page that `stream` is: columns and colour of a terminal, or neither."""
    narrow = not lookup(stream.encoding or "utf-8").name.startswith("utf")
    if not stream.isatty():
        columns = environment.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() and int(columns) > 0 else None
        return Page(width=width, ascii_only=narrow)
    plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
    width = shutil.get_terminal_size().columns
    return Page(width=width, color=not plain, ascii_only=narrow)


def encodable(text: str, stream: TextIO) -> str:
    r"""Replace what the stream's encoding lacks by an escape (`\xb7`)."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def drop_buffered(stream: TextIO) -> None:
    """Let what could not be written go nowhere, so that the interpreter's last flush is quiet."""
    with suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def check_destination(path: Path) -> None:
    """Raise `UsageError` where a result cannot be put, before any work is done for it."""
    shown = visible(str(path))
    if path.is_dir():
        raise UsageError(f"cannot write {shown}: it is a directory", "name a file in it")
    if path.exists() and not path.is_file():  # a device or a named pipe: written as it is
        return
    if path.is_symlink():
        raise UsageError(
            f"cannot write {shown}: it is a symbolic link", "name the file that it points to"
        )
    if not path.parent.is_dir():
        raise UsageError(
            f"cannot write {shown}: there is no directory {visible(str(path.parent))}",
            "make it first, or name another file",
        )
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write {shown}: its directory is not writable")
