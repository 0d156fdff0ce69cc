"""Folder with weights -> whether the index in it keeps to the folder: transformers does not ask."""

from pathlib import Path, PurePosixPath, PureWindowsPath

from normscope.errors import FailureKind, NormscopeError
from normscope.files import TooDeepError, TooLongError, read_object
from normscope.limits import Limits

_INDEX = "model.safetensors.index.json"
_DEEPEST = 8


def check_index(target: str, directory: Path, limits: Limits) -> None:
    """Raise `NormscopeError` of kind `corrupt` where an index names files of other folders."""
    path = directory / _INDEX
    if not path.is_file():
        return
    try:
        names = read_object(path, most=limits.index_bytes, deepest=_DEEPEST).get("weight_map")
    except (OSError, ValueError, TooDeepError, TooLongError) as error:
        raise _bad(target, f"cannot be read: {error}") from error
    for name in set(names.values()) if isinstance(names, dict) else ():
        if not _is_plain(name):
            raise _bad(target, f"names a file outside of the folder: {name!r}")


def _is_plain(name: object) -> bool:
    if not isinstance(name, str) or name in {"", ".", ".."} or "\0" in name:
        return False
    return PurePosixPath(name).name == name == PureWindowsPath(name).name


def _bad(target: str, what: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.CORRUPT, f"{target}: {_INDEX} {what}", "fetch or save the checkpoint again"
    )
