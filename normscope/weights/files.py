"""Directory -> the files that hold the checkpoint's tensors; nothing of them is read."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.files import TooDeepError, TooLongError, read_object
from normscope.limits import Limits

_DEEPEST = 100
SINGLE = "model.safetensors"
PICKLED = "pytorch_model.bin"
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFiles:
    """The files of one kind that hold a checkpoint's tensors."""

    paths: tuple[Path, ...] = ()
    listed: Mapping[str, str] | None = None
    """Tensor -> file name, as the index says; None without an index."""


def find_weight_files(target: str, directory: Path) -> WeightFiles:
    """Return the safetensors files that transformers would load, of one name or by an index.

    Empty where there are none. Raises `NormscopeError` of kind `corrupt` for an index that cannot
    be read, that names a file outside of the directory or one that is missing.
    """
    return _found(target, directory, SINGLE)


def find_pickled_files(target: str, directory: Path) -> WeightFiles:
    """Return the files that only `torch.load` reads, as `find_weight_files` does."""
    return _found(target, directory, PICKLED)


def refuse_shards_alone(target: str, directory: Path) -> None:
    """Raise `NormscopeError` of kind `corrupt` where shards lie in a folder and no index.

    For a folder where nothing else was found: transformers does not load it either.
    """
    shards = 0
    with suppress(OSError):  # a folder that may be entered and not listed
        shards = sum(1 for path in directory.iterdir() if _SHARD.fullmatch(path.name))
    if shards:
        files = "a shard" if shards == 1 else f"{shards} shards"
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{target}: {files} of safetensors and no {_index_of(SINGLE)}, without which "
            "transformers does not load them",
            "fetch the index too; with --weights none inspect and audit read the config alone",
        )


def _found(target: str, directory: Path, name: str) -> WeightFiles:
    if _exists(directory / name):
        return WeightFiles(paths=(_regular(target, directory / name),))
    index = directory / _index_of(name)
    if not _exists(index):
        return WeightFiles()
    listed = read_weight_map(target, index)
    paths = tuple(_shard(target, index, shard) for shard in sorted(set(listed.values())))
    return WeightFiles(paths=paths, listed=listed)


def _index_of(name: str) -> str:
    return f"{name}.index.json"


def has_weight_files(checkpoint: Checkpoint) -> bool:
    """Tell whether there are safetensors files beside the config."""
    directory = checkpoint.directory
    if checkpoint.kind in {CheckpointKind.CONFIG_FILE, CheckpointKind.GGUF}:
        return False  # what lies beside the file is another's
    return directory is not None and _any(directory, SINGLE)


def has_pickled_files(checkpoint: Checkpoint) -> bool:
    """Tell whether there are pickled weights beside the config."""
    directory = checkpoint.directory
    if checkpoint.kind in {CheckpointKind.CONFIG_FILE, CheckpointKind.GGUF}:
        return False  # what lies beside the file is another's
    return directory is not None and _any(directory, PICKLED)


def _any(directory: Path, name: str) -> bool:
    return _exists(directory / name) or _exists(directory / _index_of(name))


def _exists(path: Path) -> bool:
    return os.path.lexists(path)  # False also for a name that no file can have


def _regular(target: str, path: Path) -> Path:
    """Return `path` where it is a file: a pipe or a device would be waited for without end."""
    if path.is_file():
        return path
    what = "a folder" if path.is_dir() else "missing" if not path.exists() else "no regular file"
    raise NormscopeError(
        FailureKind.CORRUPT,
        f"{target}: {path.name} is {what}",
        "fetch or save the checkpoint again",
    )


def read_json(target: str, path: Path) -> Mapping[str, Any]:
    """Return the object that a file holds; raises `NormscopeError` of kind `corrupt`."""
    try:
        return read_object(_regular(target, path), most=Limits().index_bytes, deepest=_DEEPEST)
    except (TooLongError, TooDeepError) as error:
        raise _bad(target, path, "is larger or deeper than any index") from error
    except (ValueError, OSError) as error:
        raise _bad(target, path, f"cannot be read: {error}") from error


def read_weight_map(target: str, index: Path) -> Mapping[str, str]:
    """Return tensor -> file name; raises `NormscopeError` for a name that leads elsewhere."""
    found = read_json(target, index).get("weight_map")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise _bad(target, index, "has no weight_map from tensors to files")
    for name in found.values():
        parts = PurePosixPath(name).parts
        if len(parts) != 1 or parts[0] in ("..", "/") or "\\" in name or "\0" in name:
            raise _bad(target, index, f"names a file outside of the folder: {name!r}")
    return found


def _shard(target: str, index: Path, name: str) -> Path:
    if not _exists(index.parent / name):
        raise _bad(target, index, f"names a shard that is missing: {name}")
    return _regular(target, index.parent / name)


def _bad(target: str, path: Path, what: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.CORRUPT, f"{target}: {path.name} {what}", "fetch or save the checkpoint again"
    )
