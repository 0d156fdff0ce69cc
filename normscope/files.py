"""Bytes -> a file that is whole or not there."""

import os
import tempfile
from pathlib import Path
from typing import BinaryIO


class PendingFile:
    """A file that is written beside `path` and then put in place, or let go.

    Of several writers one wins and no reader sees a part. Raises `OSError`.
    """

    def __init__(self, path: Path) -> None:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        self.file: BinaryIO = os.fdopen(descriptor, "w+b")
        self._path = path
        self._temporary = Path(name)

    def commit(self) -> None:
        """Put the file in place, with the mode that `open` would give it."""
        path = self._path
        self.file.close()
        self._temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        self._temporary.replace(path)

    def discard(self) -> None:
        """Leave nothing behind; does nothing once the file is in place."""
        self.file.close()
        self._temporary.unlink(missing_ok=True)


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
