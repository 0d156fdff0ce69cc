"""Files: read only where they are files, written whole or not at all."""

import atexit
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

_LONGEST_PREFIX = 40
"""Characters of a file's name that its temporary name begins with; names end at 255 bytes."""


class TooLongError(Exception):
    """A file has more bytes than were asked for."""


class TooDeepError(Exception):
    """Values lie deeper in one another than was asked for."""


def read_regular(path: Path, *, most: int) -> bytes:
    """Return the content of a file of at most so many bytes.

    A pipe would be waited for and a device read without end: both are refused, and links are
    followed. Raises `OSError`, `TooLongError`.
    """
    # A pipe without a writer opens at once when it need not wait.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        size = os.fstat(descriptor).st_size
        content = file.read(most + 1) if size <= most else b""
    if size > most or len(content) > most:
        raise TooLongError
    return content


_BINARY = getattr(os, "O_BINARY", 0)


def read_object(path: Path, *, most: int, deepest: int) -> Mapping[str, Any]:
    """Return the JSON object that a file holds.

    Raises as `read_regular`, `TooDeepError`, and `ValueError` for what is no JSON object.
    """
    text = read_regular(path, most=most).decode("utf-8")
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise TooDeepError from error
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not an object")  # noqa: TRY004
    _check_depth(content, deepest)
    return content


def _check_depth(content: Any, deepest: int) -> None:
    level: list[Any] = [content]
    for _ in range(deepest):
        level = [inner for value in level for inner in _within(value)]
        if not level:
            return
    raise TooDeepError


def _within(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in inner if isinstance(item, dict | list))


class PendingFile:
    """A file that is written beside `path` and then put in place, or let go.

    Of several writers one wins and no reader sees a part. Raises `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        name = f".{path.name[:_LONGEST_PREFIX]}.{os.urandom(8).hex()}"
        self._temporary = path.parent / name
        # Known before it is there, so that no interrupt comes between.
        _pending[self._temporary] = os.getpid()
        try:
            descriptor = os.open(self._temporary, _NEW, 0o600)
        except OSError:
            del _pending[self._temporary]
            raise
        self.file: BinaryIO = os.fdopen(descriptor, "w+b")

    def commit(self) -> None:
        """Put the file in place, with the mode that `open` would give it."""
        path = self._path
        self.file.close()
        self._temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        self._temporary.replace(path)

    def discard(self) -> None:
        """Leave nothing behind; does nothing once the file is in place."""
        with suppress(OSError):  # of a full disk; the write has told it
            self.file.close()
        self._temporary.unlink(missing_ok=True)
        _pending.pop(self._temporary, None)


_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
_pending: dict[Path, int] = {}
"""Files that are not in place yet, and the process that writes them."""


@atexit.register
def discard_pending() -> None:
    """Remove what this process has begun to write and can no longer put in place."""
    for path, process in tuple(_pending.items()):
        if process == os.getpid():  # a forked one knows of its parent's
            with suppress(OSError):
                path.unlink()
            _pending.pop(path, None)


def take_room(file: BinaryIO, size: int) -> None:
    """Have the disk set aside so many bytes behind the position, or raise `OSError`.

    What is written there afterwards fits. Nothing is written before, so that what is there stays
    whole; the file may be longer then, until it is cut. A file in memory needs nothing.
    """
    try:
        descriptor = file.fileno()
    except OSError:
        return
    file.flush()
    start = file.tell()
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, max(1, size))
        return
    for done in range(0, size, len(_NOTHING)):
        os.write(descriptor, _NOTHING[: size - done])
    os.lseek(descriptor, start, os.SEEK_SET)


_NOTHING = bytes(1 << 20)


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in place, whole or not at all. Raises `OSError`."""
    pending = PendingFile(path)
    try:
        pending.file.write(content)
        pending.commit()
    finally:
        pending.discard()


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
