"""Key -> the file that keeps an answer; whatever is wrong with it, there is just no answer."""

import json
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from normscope.cache.code import code_digest, tree_digest
from normscope.cache.documents import plain, restored
from normscope.files import TooLongError, read_regular, replace_file
from normscope.graph import Graph
from normscope.inspection import Inspection

SCHEMA = "normscope.cache/2"

_LARGEST = 1 << 28
"""Bytes of an entry; a model of 10,000 blocks takes a tenth of it."""
_NO_ENTRY = (
    OSError,
    TooLongError,
    RuntimeError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
)

_log = logging.getLogger(__name__)

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Where the code lies that an answer is true of."""

    folders: tuple[str, ...] = ()
    """Of the model, and of the libraries that it called."""
    trees: tuple[str, ...] = ()
    """Folders that count with all that lies below them."""

    def digest(self) -> str:
        """Return what changes with the code; raises `OSError` where a folder is gone."""
        trees = [tree_digest(Path(tree)) for tree in self.trees]
        return ".".join([code_digest(map(Path, self.folders)), *trees])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamp:
    """What has to hold for an entry to count."""

    schema: str
    code: Code
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[Kept]):
    """An answer with the code that it is true of."""

    answer: Kept
    code: Code


def recall(key: str, kind: type[Kept], folder: Path | None = None) -> Entry[Kept] | None:
    """Return what is kept under `key`, in the user's cache folder or another.

    None where there is nothing, where it cannot be read, and where the code that ran has changed.
    """
    return _read(key, folder, lambda answer: restored(kind, answer))


def recall_code(key: str, folder: Path | None = None) -> Code | None:
    """Return the code that the answer kept under `key` is true of, None where there is none."""
    entry = _read(key, folder, lambda _: None)
    return None if entry is None else entry.code


def _read(key: str, folder: Path | None, restore: Callable[[Any], Kept]) -> Entry[Kept] | None:
    try:
        document: Any = json.loads(read_regular(_path(key, folder), most=_LARGEST))
        stamp = restored(_Stamp, document["stamp"])
        if stamp.schema != SCHEMA or stamp.digest != stamp.code.digest():
            return None
        answer = restore(document["answer"])
    except FileNotFoundError:
        return None
    except _NO_ENTRY:
        _log.debug("the cached answer %s cannot be read", key, exc_info=True)
        return None
    _log.debug("answered from the cache: %s", key)
    return Entry(answer=answer, code=stamp.code)


def keep(key: str, answer: Any, code: Code, folder: Path | None = None) -> None:
    """Keep an answer under `key`; does nothing where it cannot.

    Several writers may do so at once: one of them wins, and all say the same.
    """
    try:
        stamp = _Stamp(schema=SCHEMA, code=code, digest=code.digest())
        document = {"stamp": plain(stamp), "answer": plain(answer)}
        path = _path(key, folder)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(document, separators=(",", ":")).encode())
    except (OSError, RuntimeError):
        _log.debug("the answer %s cannot be kept", key, exc_info=True)


def recall_inspection(key: str, folder: Path | None = None) -> Inspection | None:
    """Return the inspection that is kept under `key`, with the target that it was asked for."""
    entry = recall(key, Inspection, folder)
    return None if entry is None else entry.answer


def keep_inspection(
    key: str, inspection: Inspection, graphs: Iterable[Graph], folder: Path | None = None
) -> None:
    """Keep an inspection under `key`; `graphs` tell which code ran."""
    keep(key, inspection, _code_that_ran(graphs), folder)


def _code_that_ran(graphs: Iterable[Graph]) -> Code:
    files = {
        node.source.file for graph in graphs for node in graph.nodes if node.source is not None
    }
    return Code(folders=tuple(sorted({str(Path(file).parent) for file in files})))


def _path(key: str, folder: Path | None) -> Path:
    """Return where an answer is kept; raises `RuntimeError` for a user without a home."""
    if folder is not None:
        return folder / f"{key}.json"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification has a relative path ignored.
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "normscope" / f"{key}.json"
