"""Key -> the file that keeps an answer; whatever is wrong with it, there is just no answer."""

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from normscope.cache.code import code_digest
from normscope.cache.documents import plain, restored
from normscope.files import replace_file
from normscope.graph import Graph
from normscope.inspection import Inspection

SCHEMA = "normscope.cache/1"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An inspection with the code that it is true of."""

    schema: str
    folders: tuple[str, ...]
    """Where the code lies that ran: of the model, and of the libraries that it called."""
    code: str
    """The digest of these folders."""
    inspection: Inspection


def recall_inspection(key: str) -> Inspection | None:
    """Return the inspection that is kept under `key`, with the target that it was asked for.

    None where there is none, where it cannot be read, and where the code that ran has changed.
    """
    try:
        entry = restored(_Entry, json.loads(_path(key).read_text(encoding="utf-8")))
        if entry.schema != SCHEMA or entry.code != _digest(entry.folders):
            return None
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError):
        _log.debug("the cached answer %s cannot be read", key, exc_info=True)
        return None
    _log.debug("answered from the cache: %s", key)
    return entry.inspection


def keep_inspection(key: str, inspection: Inspection, graphs: Iterable[Graph]) -> None:
    """Keep an inspection under `key`; `graphs` tell which code ran. Does nothing where it cannot.

    Several writers may do so at once: one of them wins, and all say the same.
    """
    folders = _folders_that_ran(graphs)
    try:
        entry = _Entry(schema=SCHEMA, folders=folders, code=_digest(folders), inspection=inspection)
        path = _path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(plain(entry), separators=(",", ":")).encode())
    except (OSError, RuntimeError):
        _log.debug("the answer %s cannot be kept", key, exc_info=True)


def _folders_that_ran(graphs: Iterable[Graph]) -> tuple[str, ...]:
    files = {
        node.source.file for graph in graphs for node in graph.nodes if node.source is not None
    }
    return tuple(sorted({str(Path(file).parent) for file in files}))


def _digest(folders: Iterable[str]) -> str:
    return code_digest(map(Path, folders))


def _path(key: str) -> Path:
    """Return where an answer is kept; raises `RuntimeError` for a user without a home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification has a relative path ignored.
    root = named if named.is_absolute() else Path.home() / ".cache"
    return root / "normscope" / f"{key}.json"
