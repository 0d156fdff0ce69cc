"""Checkpoint -> the code that comes with it, and what is said before it runs."""

from collections.abc import Callable, Iterator
from typing import Any

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError

_ELSEWHERE = "--"
"""Stands between another repository and the class in it."""


def tell_code(checkpoint: Checkpoint, auto_map: Any, tell: Callable[[str], None]) -> None:
    """Say which files run, of which repository and revision, a sentence for each origin."""
    origins: dict[str, dict[str, None]] = {}
    for reference in references(auto_map):
        repository, _, name = reference.rpartition(_ELSEWHERE)
        origin = f"{repository} at its newest revision" if repository else _own(checkpoint)
        origins.setdefault(origin, {})[f"{name.rpartition('.')[0]}.py"] = None
    for origin, files in origins.items():
        tell(f"{checkpoint.target}: --trust-remote-code runs {', '.join(files)} of {origin}")


def references(auto_map: Any) -> Iterator[str]:
    """Yield `module.Class` or `repository--module.Class` for each class that an auto_map names."""
    if isinstance(auto_map, str):
        yield auto_map
    elif isinstance(auto_map, dict):
        for value in auto_map.values():
            yield from references(value)
    elif isinstance(auto_map, list | tuple):
        for value in auto_map:
            yield from references(value)


def own_revision(checkpoint: Checkpoint, auto_map: Any) -> str | None:
    """Return the revision that code is taken at: that of the config, where both lie together."""
    if any(_ELSEWHERE in reference for reference in references(auto_map)):
        return None
    return checkpoint.commit or checkpoint.revision


def refused_code(checkpoint: Checkpoint, what: str) -> NormscopeError:
    """Return the failure of a checkpoint that is nothing without its own code."""
    return NormscopeError(
        FailureKind.REMOTE_CODE,
        f"{checkpoint.target}: {what} is defined by code in the checkpoint",
        "read that code, then run again with --trust-remote-code",
    )


def _own(checkpoint: Checkpoint) -> str:
    if checkpoint.repository is None:
        return f"the folder {checkpoint.directory}"
    revision = checkpoint.commit or checkpoint.revision or "its newest revision"
    return f"{checkpoint.repository} at {revision}"
