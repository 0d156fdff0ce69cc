"""Folders of source code -> a digest that changes with any of their files."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from normscope.cache.steady import looked_up


def code_digest(folders: Iterable[Path]) -> str:
    """Return a digest of name, size and time of change of each .py file that lies in `folders`.

    The files are not read. Raises `OSError` where a folder cannot be listed.
    """
    digest = hashlib.sha256()
    for folder in sorted(folders):
        digest.update(looked_up(folder, partial(_folder_digest, folder)))
    return digest.hexdigest()


def tree_digest(root: Path) -> str:
    """Return a digest as `code_digest` does, of `root` and all folders below it."""
    return looked_up(("tree", root), lambda: code_digest(package_folders(root)))


def package_folders(root: Path) -> Iterator[Path]:
    """Yield `root` and the folders below it."""
    for folder, below, _ in os.walk(root):
        below[:] = [name for name in below if name != "__pycache__"]
        yield Path(folder)


def _folder_digest(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for name, size, changed in sorted(_sources(folder)):
        digest.update(f"{folder}\0{name}\0{size}\0{changed}\n".encode(errors="surrogateescape"))
    return digest.digest()


def _sources(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                facts = entry.stat()
                yield entry.name, facts.st_size, facts.st_mtime_ns
