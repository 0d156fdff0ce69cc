"""Target text -> Checkpoint: what is asked for and its config, without any tensor."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from normscope.errors import AdapterOnlyError, FailureKind, NormscopeError, UsageError
from normscope.files import TooDeepError, TooLongError, read_object
from normscope.hub import Repository, repository_file
from normscope.limits import Limits

CONFIG_NAME = "config.json"
ADAPTER_CONFIG_NAME = "adapter_config.json"
GGUF_SUFFIX = ".gguf"

_TYPE, _DEMO, _PYTHON = "type:", "demo:", "py:"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class CheckpointKind(StrEnum):
    """Which of the forms of a target it has."""

    DIRECTORY = "directory"
    CONFIG_FILE = "config file"
    HUB = "hub"
    TYPE = "type"
    DEMO = "demo"
    PYTHON = "python"
    GGUF = "gguf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One target, found: its config as it was written, and where its files lie."""

    target: str
    kind: CheckpointKind
    model_type: str | None = None
    config: Mapping[str, Any] | None = None
    """The content of config.json, unchanged; None for `type:`, `py:` and GGUF targets."""
    directory: Path | None = None
    """Where weights and tokenizer are looked for; None where there can be none."""
    repository: str | None = None
    """Name of the Hub repository, for a `hub` target."""
    revision: str | None = None
    factory: str | None = None
    """`package.module:factory`, for a `python` target."""
    offline: bool = False
    weights_file: Path | None = None
    """The file of a `gguf` target, whose config is its metadata."""
    adapter: Path | None = None
    """Folder of the adapter that the target names; the rest is its base model's."""

    @property
    def commit(self) -> str | None:
        """The commit that a repository's config was fetched at."""
        directory = self.directory
        if self.repository is None or directory is None or directory.parent.name != "snapshots":
            return None
        return directory.name

    @property
    def architectures(self) -> tuple[str, ...]:
        """Names of the classes that the checkpoint says it was saved from."""
        found = (self.config or {}).get("architectures")
        return tuple(str(name) for name in found) if isinstance(found, list) else ()


def resolve_checkpoint(
    target: str,
    *,
    revision: str | None = None,
    offline: bool = False,
    limits: Limits | None = None,
) -> Checkpoint:
    """Find what `target` names and read its config, where it is within `limits`.

    Only `org/name` targets may reach the network, and never when `offline` or HF_HUB_OFFLINE is
    set. Raises `NormscopeError` where there is nothing to read, `UsageError` where the target
    cannot mean anything.
    """
    if not target.strip():
        raise UsageError("the target is empty", "name a directory, a config.json or `type:bert`")
    if target.startswith(_TYPE):
        name = target.removeprefix(_TYPE)
        return Checkpoint(target=target, kind=CheckpointKind.TYPE, model_type=name)
    limits = limits or Limits()
    if target.startswith(_DEMO):
        return _demo(target, limits)
    if target.startswith(_PYTHON):
        return _python(target)
    path = _existing(target)
    if path is not None:
        return _local(target, path, limits)
    repository, _, at_revision = target.partition("@")
    if _HUB_ID.fullmatch(repository) and (at_revision or not Path(repository).parent.is_dir()):
        wanted = at_revision or revision
        return _hub(
            Repository(target=target, name=repository, revision=wanted, offline=offline), limits
        )
    raise NormscopeError(
        FailureKind.NOT_FOUND,
        f"{target}: no such file or directory",
        "globs work in the targets of a policy, and where the shell sees them: without quotes"
        if set("*?[") & set(target)
        else f"for a Hub repository write `org/name` (`{repository}@main` where a folder of that "
        "name lies here), for a model type `type:NAME`",
    )


def resolve_base(
    adapter: AdapterOnlyError, *, offline: bool, limits: Limits | None = None
) -> Checkpoint:
    """Find the model that an adapter names as its base.

    The name is a stranger's word: it may lead to a folder or to the Hub, never to code. Raises as
    `resolve_checkpoint`.
    """
    base = adapter.base
    if base is None or base.startswith((_PYTHON, _TYPE, _DEMO)):
        raise adapter
    return resolve_checkpoint(base, offline=offline, limits=limits)


def _demo(target: str, limits: Limits) -> Checkpoint:
    from normscope.demo import demo_path

    try:
        directory = demo_path(target.removeprefix(_DEMO))
    except LookupError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{target}: there is no such demo",
            "the demos are `demo:pre-norm` and `demo:post-norm`",
        ) from error
    return _from_directory(target, directory, CheckpointKind.DEMO, limits)


def _python(target: str) -> Checkpoint:
    factory = target.removeprefix(_PYTHON)
    module, _, name = factory.partition(":")
    if not module or not name:
        raise UsageError(
            f"{target}: a Python target needs a module and a callable",
            "write `py:package.module:factory`",
        )
    return Checkpoint(target=target, kind=CheckpointKind.PYTHON, factory=factory)


# Files on this machine.


def _existing(target: str) -> Path | None:
    """Return the path that a target is, None where nothing is there."""
    try:
        path = Path(target).expanduser()
        return path if path.exists() else None
    except RuntimeError:  # `~name` of no user
        return None
    except OSError as error:  # too long to be one, or behind a folder that is closed
        raise NormscopeError(
            FailureKind.NOT_FOUND, f"{target}: cannot be looked up: {error.strerror}"
        ) from error


def _local(target: str, path: Path, limits: Limits) -> Checkpoint:
    if path.is_dir():
        return _from_directory(target, path, CheckpointKind.DIRECTORY, limits)
    if path.suffix.lower() == GGUF_SUFFIX:
        return _gguf(target, path)
    if path.name == ADAPTER_CONFIG_NAME:
        raise _adapter_only(target, path, limits)
    return _from_config(target, path, CheckpointKind.CONFIG_FILE, limits)


def _gguf(target: str, path: Path) -> Checkpoint:
    if not path.is_file():
        raise _unreadable(FailureKind.CORRUPT, target, path, "it is no regular file")
    return Checkpoint(
        target=target, kind=CheckpointKind.GGUF, directory=path.parent, weights_file=path
    )


def _from_directory(
    target: str, directory: Path, kind: CheckpointKind, limits: Limits
) -> Checkpoint:
    path = directory / CONFIG_NAME
    if _stands(path):
        return _from_config(target, path, kind, limits)
    if _stands(directory / ADAPTER_CONFIG_NAME):
        raise _adapter_only(target, directory / ADAPTER_CONFIG_NAME, limits)
    files = sorted(directory.glob(f"*{GGUF_SUFFIX}"))
    raise NormscopeError(
        FailureKind.NO_CONFIG,
        f"{target}: the directory has no {CONFIG_NAME}",
        f"name the GGUF file in it: {files[0]}"
        if files
        else "point to the folder that holds the checkpoint's config.json",
    )


def _stands(path: Path) -> bool:
    """Tell whether a name is taken, be it by a link that leads nowhere."""
    return path.is_symlink() or path.exists()


def _from_config(
    target: str,
    path: Path,
    kind: CheckpointKind,
    limits: Limits,
    repository: Repository | None = None,
) -> Checkpoint:
    config = _read_json(target, path, limits)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) and not config.get("architectures"):
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{target}: {path.name} names neither a model_type nor architectures",
            "a transformers config.json has at least `model_type`",
        )
    return Checkpoint(
        target=target,
        kind=kind,
        model_type=model_type if isinstance(model_type, str) else None,
        config=config,
        directory=path.parent,
        repository=None if repository is None else repository.name,
        revision=None if repository is None else repository.revision,
        offline=repository is not None and repository.offline,
    )


def _read_json(target: str, path: Path, limits: Limits) -> Mapping[str, Any]:
    try:
        return read_object(path, most=limits.config_bytes, deepest=limits.config_depth)
    except (TooLongError, TooDeepError) as error:
        most = (
            f"is larger than {limits.config_bytes / 1e6:g} MB"
            if isinstance(error, TooLongError)
            else f"has values more than {limits.config_depth} deep in one another"
        )
        raise NormscopeError(
            FailureKind.TOO_LARGE,
            f"{target}: {path.name} {most}",
            "a transformers config.json is a few kilobytes of settings",
        ) from error
    except ValueError as error:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{target}: {path.name} is not valid JSON: {error}",
            "fetch or write the file again; a transformers config.json is one JSON object",
        ) from error
    except OSError as error:
        closed = isinstance(error, PermissionError)
        kind = FailureKind.NOT_FOUND if closed else FailureKind.CORRUPT
        raise _unreadable(kind, target, path, error.strerror or str(error)) from error


def _unreadable(kind: FailureKind, target: str, path: Path, why: str) -> NormscopeError:
    return NormscopeError(
        kind,
        f"{target}: {path.name} cannot be read: {why}",
        "put the file itself there, and let it be readable",
    )


def _adapter_only(target: str, path: Path, limits: Limits) -> AdapterOnlyError:
    base = _read_json(target, path, limits).get("base_model_name_or_path")
    named = f"an adapter for {base}" if base else "an adapter whose base model is not named"
    return AdapterOnlyError(
        f"{target}: holds {named}, and no model of its own",
        f"normscope inspect {shlex.quote(str(base))}"
        if base
        else "inspect the model that it was trained on",
        base=base if isinstance(base, str) else None,
        directory=path.parent,
    )


# The Hub.


def _hub(repository: Repository, limits: Limits) -> Checkpoint:
    target = repository.target
    path = repository_file(repository, CONFIG_NAME)
    if path is not None:
        return _from_config(target, path, CheckpointKind.HUB, limits, repository)
    adapter = repository_file(repository, ADAPTER_CONFIG_NAME)
    if adapter is not None:
        raise _adapter_only(target, adapter, limits)
    raise NormscopeError(
        FailureKind.NO_CONFIG,
        f"{target}: the repository has no {CONFIG_NAME}",
        "only transformers checkpoints can be read",
    )
