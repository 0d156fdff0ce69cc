"""Target text -> Checkpoint: what is asked for and its config, without any tensor."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from normscope.errors import FailureKind, NormscopeError, UsageError

CONFIG_NAME = "config.json"
ADAPTER_CONFIG_NAME = "adapter_config.json"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One target, found: its config as it was written, and where its files lie."""

    target: str
    kind: CheckpointKind
    model_type: str | None = None
    config: Mapping[str, Any] | None = None
    """The content of config.json, unchanged; None for `type:` and `py:` targets."""
    directory: Path | None = None
    """Where weights and tokenizer are looked for; None where there can be none."""
    repository: str | None = None
    """Name of the Hub repository, for a `hub` target."""
    revision: str | None = None
    factory: str | None = None
    """`package.module:factory`, for a `python` target."""
    offline: bool = False

    @property
    def architectures(self) -> tuple[str, ...]:
        """Names of the classes that the checkpoint says it was saved from."""
        found = (self.config or {}).get("architectures")
        return tuple(str(name) for name in found) if isinstance(found, list) else ()


def resolve_checkpoint(
    target: str, *, revision: str | None = None, offline: bool = False
) -> Checkpoint:
    """Find what `target` names and read its config.

    Only `org/name` targets may reach the network, and never when `offline` or HF_HUB_OFFLINE is
    set. Raises `NormscopeError` where there is nothing to read, `UsageError` where the target
    cannot mean anything.
    """
    if not target.strip():
        raise UsageError("the target is empty", "name a directory, a config.json or `type:bert`")
    if target.startswith(_TYPE):
        name = target.removeprefix(_TYPE)
        return Checkpoint(target=target, kind=CheckpointKind.TYPE, model_type=name)
    if target.startswith(_DEMO):
        return _demo(target)
    if target.startswith(_PYTHON):
        return _python(target)
    path = Path(target).expanduser()
    if path.exists():
        return _local(target, path)
    repository, _, at_revision = target.partition("@")
    if _HUB_ID.fullmatch(repository) and (at_revision or not Path(repository).parent.is_dir()):
        return _hub(target, repository, at_revision or revision, offline)
    raise NormscopeError(
        FailureKind.NOT_FOUND,
        f"{target}: no such file or directory",
        f"for a Hub repository write `org/name` (`{repository}@main` where a folder of that name "
        "lies here), for a model type `type:NAME`",
    )


def _demo(target: str) -> Checkpoint:
    from normscope.demo import demo_path

    try:
        directory = demo_path(target.removeprefix(_DEMO))
    except LookupError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{target}: there is no such demo",
            "the demos are `demo:pre-norm` and `demo:post-norm`",
        ) from error
    return _from_directory(target, directory, CheckpointKind.DEMO)


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


def _local(target: str, path: Path) -> Checkpoint:
    if path.is_dir():
        return _from_directory(target, path, CheckpointKind.DIRECTORY)
    if path.suffix.lower() == ".gguf":
        raise NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{target}: GGUF checkpoints cannot be read yet",
            "use the safetensors checkpoint that it was converted from",
        )
    if path.name == ADAPTER_CONFIG_NAME:
        raise _adapter_only(target, path)
    return _from_config(target, path, CheckpointKind.CONFIG_FILE)


def _from_directory(target: str, directory: Path, kind: CheckpointKind) -> Checkpoint:
    path = directory / CONFIG_NAME
    if path.is_file():
        return _from_config(target, path, kind)
    if (directory / ADAPTER_CONFIG_NAME).is_file():
        raise _adapter_only(target, directory / ADAPTER_CONFIG_NAME)
    raise NormscopeError(
        FailureKind.NO_CONFIG,
        f"{target}: the directory has no {CONFIG_NAME}",
        "point to the folder that holds the checkpoint's config.json",
    )


def _from_config(
    target: str,
    path: Path,
    kind: CheckpointKind,
    *,
    repository: str | None = None,
    revision: str | None = None,
    offline: bool = False,
) -> Checkpoint:
    config = _read_json(target, path)
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
        repository=repository,
        revision=revision,
        offline=offline,
    )


def _read_json(target: str, path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{target}: {path.name} is not valid JSON: {error}",
            "fetch or write the file again",
        ) from error
    except OSError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND, f"{target}: {path.name} cannot be read: {error.strerror}"
        ) from error
    if not isinstance(content, dict):
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{target}: {path.name} holds a {type(content).__name__}, not an object",
            "a transformers config.json is one JSON object",
        )
    return content


def _adapter_only(target: str, path: Path) -> NormscopeError:
    base = _read_json(target, path).get("base_model_name_or_path")
    named = f"an adapter for {base}" if base else "an adapter whose base model is not named"
    return NormscopeError(
        FailureKind.ADAPTER_ONLY,
        f"{target}: holds {named}, and no model of its own",
        f"normscope inspect {base}" if base else "inspect the model that it was trained on",
    )


# The Hub.


def _hub(target: str, repository: str, revision: str | None, offline: bool) -> Checkpoint:
    path = _hub_file(target, repository, CONFIG_NAME, revision, offline)
    if path is not None:
        return _from_config(
            target,
            path,
            CheckpointKind.HUB,
            repository=repository,
            revision=revision,
            offline=offline,
        )
    adapter = _hub_file(target, repository, ADAPTER_CONFIG_NAME, revision, offline)
    if adapter is not None:
        raise _adapter_only(target, adapter)
    raise NormscopeError(
        FailureKind.NO_CONFIG,
        f"{target}: the repository has no {CONFIG_NAME}",
        "only transformers checkpoints can be read",
    )


def _hub_file(
    target: str, repository: str, name: str, revision: str | None, offline: bool
) -> Path | None:
    """Return one file of a repository from the cache or the Hub; None where it has none."""
    import huggingface_hub
    from huggingface_hub import errors

    try:
        cached = huggingface_hub.try_to_load_from_cache(repository, name, revision=revision)
        if isinstance(cached, str):
            return Path(cached)
        if cached is not None:  # the cache knows that the repository lacks the file
            return None
        if offline or huggingface_hub.constants.HF_HUB_OFFLINE:
            raise _offline(target)
        return Path(huggingface_hub.hf_hub_download(repository, name, revision=revision))
    except errors.GatedRepoError as error:
        raise NormscopeError(
            FailureKind.GATED,
            f"{target}: access to the repository is restricted",
            f"ask for access at https://huggingface.co/{repository}, then `hf auth login`",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND, f"{target}: the repository has no revision {revision}"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{target}: no such path here and no such repository on the Hub",
            "check the name; a private repository needs `hf auth login`",
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise _unreachable(target) from error
    except errors.EntryNotFoundError:
        return None
    except (errors.HfHubHTTPError, OSError) as error:
        raise _unreachable(target) from error


def _offline(target: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.OFFLINE,
        f"{target}: not in the cache, and the network may not be used",
        "drop --offline (or HF_HUB_OFFLINE), or give a local directory",
    )


def _unreachable(target: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.OFFLINE,
        f"{target}: not in the cache, and the Hub cannot be reached",
        "check the connection, or give a local directory",
    )
