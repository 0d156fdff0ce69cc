"""A target as a policy or a command line writes it -> what it names, and what is opened."""

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from normscope.audit.globs import Matches, expanded, is_glob, matches
from normscope.audit.policy import Place, TargetPattern
from normscope.audit.policy_source import did_you_mean, mistake
from normscope.audit.policy_table import shown
from normscope.checkpoint import CONFIG_NAME, GGUF_SUFFIX

_NO_PATHS = ("type:", "demo:", "py:")
_HUB_PARTS = 2
"""`org/name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTarget:
    """One target of a policy."""

    target: str
    """The same on every machine: seen from the policy's folder, with `/`."""
    opened: str
    place: Place


def found_targets(pattern: TargetPattern, folder: Path) -> tuple[FoundTarget, ...]:
    """Return what a pattern of a policy in `folder` names: one target, or the matches of a glob.

    A path is one that exists, even with `[` in its name. Raises `UsageError` with the policy's
    line for a glob that matches no checkpoint or meets a folder that may not be read.
    """
    try:
        if pattern.text.startswith(_NO_PATHS) or _is_there(folder, pattern.text):
            names: tuple[str, ...] = (pattern.text,)
        elif is_glob(pattern.text):
            names = _globbed(pattern, folder)
        else:
            names = (pattern.text,)
        return tuple(_found(name, pattern.place, folder) for name in names)
    except PermissionError as error:
        hint = "leave it out, or let this user read it"
        message = f"{shown(pattern.text)} leads into a folder that may not be read: "
        raise mistake(pattern.place, f"{message}{error.filename}", hint) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise mistake(pattern.place, f"{shown(pattern.text)} is no path: {error}") from error


def covered(pattern: str, names: Collection[str]) -> str | None:
    """Return the first name that a pattern names, literally or as a glob; None for no name."""
    text, glob = _normal(pattern)
    if pattern in names:
        return pattern
    if text in names:
        return text
    return next((name for name in names if matches(name, text)), None) if glob else None


@lru_cache(maxsize=4096)
def _normal(pattern: str) -> tuple[str, bool]:
    """Return a pattern without what means nothing in a path, and whether it is a glob."""
    return PurePosixPath(pattern).as_posix(), is_glob(pattern)


def typed_paths(typed: str, folder: Path) -> tuple[tuple[str, str], ...]:
    """Return each name that a policy in `folder` could have for a typed path, and what is opened.

    Nothing for what is no path that exists. A typed config.json is its folder too: that is what
    tools that pass changed files name.
    """
    if typed.startswith(_NO_PATHS) or not _is_there(Path(), typed):
        return ()
    path = Path(typed).expanduser()
    paths = (path, path.parent) if path.name == CONFIG_NAME else (path,)
    return tuple((name, each.as_posix()) for each in paths for name in _names_of(each, folder))


def _names_of(path: Path, folder: Path) -> Iterator[str]:
    absolute = Path(os.path.normpath(path.absolute()))
    for start, whole in ((folder.absolute(), absolute), (folder.resolve(), path.resolve())):
        with suppress(ValueError):  # it lies on another drive
            yield Path(os.path.relpath(whole, start)).as_posix()
    yield absolute.as_posix()
    with suppress(ValueError, RuntimeError):  # it lies outside of the home folder, or there is none
        yield f"~/{absolute.relative_to(Path.home()).as_posix()}"


def _is_there(folder: Path, text: str) -> bool:
    with suppress(OSError, ValueError, RuntimeError):
        return _from(folder, text).exists()
    return False


def _from(folder: Path, text: str) -> Path:
    return folder / Path(text).expanduser()


def _found(name: str, place: Place, folder: Path) -> FoundTarget:
    if name.startswith(_NO_PATHS):
        return FoundTarget(target=name, opened=name, place=place)
    if _is_there(folder, name):
        name = PurePosixPath(name).as_posix()
    elif not _means_a_path(name):
        if Path(name).exists():
            message = f"{shown(name)} is a folder where this runs, and none beside the policy"
            hint = f"for the Hub's repository write `{name}@main`, else the path seen from there"
            raise mistake(place, message, hint)
        return FoundTarget(target=name, opened=name, place=place)
    opened = _from(folder, name).as_posix()
    if not opened.startswith(("/", "../")):
        opened = f"./{opened}"  # never a repository, even where it is not there
    return FoundTarget(target=name, opened=opened, place=place)


def _means_a_path(name: str) -> bool:
    """Return whether what does not exist can be nothing but a path."""
    parts = PurePosixPath(name).parts
    explicit = name.startswith((".", "/", "~")) or len(parts) > _HUB_PARTS
    return explicit or name.lower().endswith((GGUF_SUFFIX, ".json"))


def _globbed(pattern: TargetPattern, folder: Path) -> tuple[str, ...]:
    found = expanded(pattern.text, folder)
    if not found.checkpoints:
        raise mistake(pattern.place, *_nothing(pattern.text, found, folder))
    return found.checkpoints


def _nothing(pattern: str, found: Matches, folder: Path) -> tuple[str, str]:
    """Return message and hint for a glob without a checkpoint."""
    if found.others:
        noun = "path" if found.others == 1 else "paths"
        return (
            f"{shown(pattern)} matches {found.others} {noun}, and no checkpoint",
            "a checkpoint is a folder with a config.json, or a .gguf file; globs that end with "
            "`.json` take configs",
        )
    return f"{shown(pattern)} matches nothing", _nearest_folder(pattern, folder)


def _nearest_folder(pattern: str, folder: Path) -> str:
    """Return the hint for a glob that matches nothing: the first part of it that is not there."""
    reached = folder
    for part in PurePosixPath(pattern).parts:
        if is_glob(part):
            here = f"{reached.as_posix()} holds nothing like it"
            return here + _near_name(re.sub(r"[*?\[\]]", "", part), reached)
        if not (reached / part).expanduser().exists():
            here = f"there is no `{part}` in {reached.as_posix()}"
            return here + _near_name(part, reached)
        reached = (reached / part).expanduser()
    return f"{reached.as_posix()} holds nothing like it"


def _near_name(name: str, folder: Path) -> str:
    """Return `; did you mean …?` where a folder in this one has nearly that name."""
    if not folder.is_dir():
        return ""
    names = sorted(each.name for each in folder.iterdir() if each.is_dir())
    near = did_you_mean(name, names, "")
    return f"; {near}" if near.startswith("did") else ""
