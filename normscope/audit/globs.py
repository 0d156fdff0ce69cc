"""Glob + folder -> the checkpoints that lie there."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from normscope.checkpoint import ADAPTER_CONFIG_NAME, CONFIG_NAME, GGUF_SUFFIX

_JSON = ".json"
_SIGNS = re.compile(r"[*?[]")
_ANY_DEPTH = "**"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What a glob matched."""

    checkpoints: tuple[str, ...]
    """Seen from the folder, with `/`, sorted; absolute where the glob is."""
    others: int
    """How many files and folders matched that are no checkpoint."""


def is_glob(text: str) -> bool:
    """Return whether a target has a sign of a glob: `*`, `?` or `[`."""
    return _SIGNS.search(text) is not None


def expanded(pattern: str, folder: Path) -> Matches:
    """Return what `pattern` matches under `folder`.

    Checkpoints are folders with a config.json or an adapter_config.json, .gguf files, and .json
    files where the glob itself ends with `.json`. As in a shell, `*` stays within one folder,
    `**` takes any depth (and follows no links), and hidden names match only what begins with a
    dot. Raises `PermissionError` for a folder that may not be looked through, and `RuntimeError`
    for a `~` that names nobody.
    """
    begin, base, parts = _rooted(pattern, folder)
    found = sorted(set(_walked(base, begin, parts)))
    asked = pattern.endswith(_JSON)
    checkpoints = tuple(name for name, path in found if _is_checkpoint(path, json_file=asked))
    return Matches(checkpoints=checkpoints, others=len(found) - len(checkpoints))


def matches(name: str, pattern: str) -> bool:
    """Return whether a glob matches the name of a target, without looking at any file."""
    return _match(_parts(name), _parts(pattern))


def _match(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == _ANY_DEPTH:
        inner = bool(parts) and not _hidden(parts[0]) and _match(parts[1:], patterns)
        return inner or _match(parts, patterns[1:])
    return bool(parts) and _fits(parts[0], patterns[0]) and _match(parts[1:], patterns[1:])


def _parts(text: str) -> tuple[str, ...]:
    return PurePosixPath(text).parts


def _rooted(pattern: str, folder: Path) -> tuple[str, Path, tuple[str, ...]]:
    """Return what the names of the matches begin with, where to start, and what is below."""
    parts = _parts(pattern)
    first = parts[0] if parts else ""
    if first.startswith("/"):
        return first, Path(first), parts[1:]
    if first.startswith("~"):
        return first, Path(first).expanduser(), parts[1:]
    return "", folder, parts


def _walked(path: Path, name: str, parts: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of everything that the parts of a glob match under `path`."""
    if not parts:
        yield name or ".", path
        return
    part, rest = parts[0], parts[1:]
    if part == _ANY_DEPTH:
        yield from _walked(path, name, rest)
        below = (e.name for e in _entries(path) if _is_own_folder(e) and not _hidden(e.name))
        rest = parts
    elif is_glob(part):
        below = (entry.name for entry in _entries(path) if _fits(entry.name, part))
    else:
        below = (each for each in (part,) if _exists(path / each))
    for each in below:
        yield from _walked(path / each, _joined(name, each), rest)


def _joined(name: str, part: str) -> str:
    return (PurePosixPath(name) / part).as_posix()


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except (NotADirectoryError, FileNotFoundError):
        return []


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _fits(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (not _hidden(name) or _hidden(part))


def _hidden(name: str) -> bool:
    return name.startswith(".") and name not in {".", ".."}


def _exists(path: Path, *, links: bool = True) -> bool:
    """Return whether there is something; unlike `Path.exists`, alike in every Python.

    Where `links` are not followed, one that leads nowhere is something.
    """
    try:
        path.stat(follow_symlinks=links)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_checkpoint(path: Path, *, json_file: bool) -> bool:
    if path.suffix.lower() == GGUF_SUFFIX or (json_file and path.suffix == _JSON):
        return path.is_file()
    return any(_exists(path / name, links=False) for name in (CONFIG_NAME, ADAPTER_CONFIG_NAME))
