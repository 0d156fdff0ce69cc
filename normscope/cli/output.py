"""The only writer: results to stdout or to a file, everything else to stderr."""

import errno
import os
import shutil
import sys
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TextIO

from normscope.errors import UsageError
from normscope.files import replace_file as replace_file
from normscope.render.inert import inert_line
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
    if path is None or str(path) in _STANDARD:
        yield StandardOutput(_standard_output())
        return
    check_destination(path)
    output = FileOutput(path)
    yield output
    output.commit()


def _standard_output() -> TextIO:
    stream: TextIO | None = sys.stdout
    if stream is None:
        raise UsageError("cannot write the results: standard output is closed")
    return stream


_STANDARD = frozenset({"-", "/dev/stdout"})
"""What is typed for stdout, whatever the shell has made of it."""


def teller(*, quiet: bool) -> Callable[[str], None]:
    """Return what says a line with foreign words in it, unless nothing is to be said."""

    def tell(text: str) -> None:
        if not quiet:
            say(visible(text))

    return tell


def say(text: str) -> None:
    """Write one line about the work, never a result, to stderr; foreign words steer nothing."""
    shown = "\n".join(map(inert_line, text.split("\n")))
    with suppress(OSError, ValueError):  # nothing is left to tell of it where stderr is closed
        sys.stderr.write(encodable(f"{shown}\n", sys.stderr))
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
    try:
        if path.is_dir():
            raise UsageError(f"cannot write {shown}: it is a directory", "name a file in it")
        if path.is_symlink() and not _is_systems_own(path):
            raise UsageError(
                f"cannot write {shown}: it is a symbolic link", "name the file that it points to"
            )
        if path.exists() and not path.is_file():  # a device or a named pipe: written as it is
            return
        _check_folder(path.parent, shown)
    except OSError as error:
        raise UsageError(f"cannot write {shown}: {error.strerror}") from error


def check_distinct(written: Mapping[str, Path | None], read: Iterable[Path]) -> None:
    """Raise `UsageError` where one file would be written twice, or over what is read.

    `written` has a path, if one was typed, for each option that writes one.
    """
    taken = {path.resolve(): "a file that is read" for path in read}
    for option, path in written.items():
        place = None if path is None else _place(path)
        if place is None:
            continue
        if place in taken:
            raise UsageError(
                f"{option} {visible(str(path))} would be written over {taken[place]}",
                "name another file",
            )
        taken[place] = f"that of {option}"


def _place(path: Path) -> Path | None:
    """Return where a file is or will be; None for a stream, or where nothing can be."""
    try:
        is_file = path.is_file() or not path.exists()
        return path.resolve() if is_file and str(path) not in _STANDARD else None
    except OSError:
        return None


def _check_folder(folder: Path, shown: str) -> None:
    if not folder.is_dir():
        raise UsageError(
            f"cannot write {shown}: there is no directory {visible(str(folder))}",
            "make it first, or name another file",
        )
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {shown}: its directory is not writable")


def _is_systems_own(link: Path) -> bool:
    """Tell whether a link is a name for a pipe or a terminal: /dev/stderr, a shell's /dev/fd/63."""
    named = link.parent in {Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd")}
    return named and link.exists() and not link.is_file()
