"""Checkpoint -> its tokenizer."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import transformers

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.files import TooDeepError, TooLongError, read_object
from normscope.limits import Limits
from normscope.model.configuration import refused
from normscope.model.quiet import quiet_transformers
from normscope.model.remote_code import refused_code, tell_code
from normscope.model.sealed import sealed
from normscope.model.snapshot import fetched_directory

_SETTINGS = "tokenizer_config.json"
_WORDS = frozenset({".json", ".model", ".txt", ".tiktoken"})
"""Endings of the files that a tokenizer may read."""


def load_tokenizer(
    checkpoint: Checkpoint,
    *,
    trust_remote_code: bool = False,
    limits: Limits | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> transformers.PreTrainedTokenizerBase | None:
    """Return the checkpoint's tokenizer, or None where it has none.

    `tell` is given what code will run, where it is trusted. Raises `NormscopeError`: `remote_code`
    where only code in the checkpoint defines it, `too_large` for files beyond any tokenizer's.
    """
    if checkpoint.directory is None:
        return None
    directory = fetched_directory(checkpoint) if checkpoint.repository else checkpoint.directory
    limits = limits or Limits()
    _check_sizes(checkpoint, directory, limits)
    auto_map = _settings(checkpoint, directory, limits).get("auto_map")
    if auto_map and trust_remote_code:
        tell_code(checkpoint, auto_map, tell)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    if checkpoint.weights_file is not None:
        options["gguf_file"] = checkpoint.weights_file.name
    with (
        quiet_transformers(),
        sealed(checkpoint.target, trust_remote_code=trust_remote_code),
    ):
        found = _loaded(checkpoint, directory, options)
    if found is None and auto_map and not trust_remote_code:
        raise refused_code(checkpoint, "the tokenizer")
    return found


def _loaded(
    checkpoint: Checkpoint, directory: Path, options: dict[str, Any]
) -> transformers.PreTrainedTokenizerBase | None:
    try:
        found: transformers.PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(
            str(directory), **options
        )
    except ImportError as error:
        if _lacks_files(error):
            return None
        raise refused(checkpoint, "the tokenizer", error) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    except Exception as error:  # what tokenizers raises has no class of its own
        raise _damaged(checkpoint, f"{type(error).__name__}: {error}") from error
    # Without any file transformers may still make one, which knows no token.
    return found if len(found.get_vocab()) > len(found.all_special_tokens) else None


def _lacks_files(error: ImportError) -> bool:
    """Tell whether transformers 4 asks for protobuf only to name the error of a missing file."""
    return isinstance(error.__context__, OSError | TypeError)


def _check_sizes(checkpoint: Checkpoint, directory: Path, limits: Limits) -> None:
    for path in directory.iterdir():
        if path.suffix in _WORDS and path.is_file():
            size = path.stat().st_size
            if size > limits.tokenizer_bytes:
                raise _too_large(checkpoint, f"{path.name} has {size / 1e6:,.0f} MB")


def _settings(checkpoint: Checkpoint, directory: Path, limits: Limits) -> Mapping[str, Any]:
    path = directory / _SETTINGS
    if not path.is_file():
        return {}
    try:
        return read_object(path, most=limits.config_bytes, deepest=limits.config_depth)
    except (TooLongError, TooDeepError) as error:
        raise _too_large(checkpoint, f"{path.name} is larger or deeper than settings") from error
    except (ValueError, OSError) as error:
        raise _damaged(checkpoint, f"{path.name}: {error}") from error


def _too_large(checkpoint: Checkpoint, what: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.TOO_LARGE,
        f"{checkpoint.target}: the tokenizer cannot be read: {what}",
        "give token ids: --input-ids 101,2023,102",
    )


def _damaged(checkpoint: Checkpoint, what: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.CORRUPT,
        f"{checkpoint.target}: the tokenizer cannot be read: {what}",
        "fetch or save it again, or give token ids: --input-ids 101,2023,102",
    )
