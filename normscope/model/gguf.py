"""GGUF file -> transformers config, class, and what loading it takes."""

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import modeling_gguf_pytorch_utils as legacy
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.model.gguf_reader import short_lists, short_reader
from normscope.model.packages import need_package

try:
    from transformers.integrations.gguf.gguf_config_mapping import GGUF_CONFIG_ARCHS
    from transformers.integrations.gguf.reader import read_gguf_metadata
except ModuleNotFoundError:  # older transformers reads GGUF in another way, all else as here
    GGUF_CONFIG_ARCHS = {}
    read_gguf_metadata = None  # type: ignore[assignment]


def gguf_path(checkpoint: Checkpoint) -> Path:
    """Return the file that a `gguf` target names."""
    assert checkpoint.weights_file is not None
    return checkpoint.weights_file


def read_gguf_config(checkpoint: Checkpoint) -> transformers.PretrainedConfig:
    """Return transformers' config from the metadata of a GGUF file, without reading a tensor.

    Raises `NormscopeError`: `unknown_architecture` where transformers cannot convert it,
    `missing_dependency` without the package gguf, `corrupt` for a damaged file.
    """
    path = gguf_path(checkpoint)
    metadata = _metadata(checkpoint, path)
    _refuse_parts(checkpoint, metadata)
    architecture = str(metadata.get("general.architecture"))
    if architecture not in GGUF_CONFIG_ARCHS:
        _check_known(checkpoint, architecture)
        need_package("gguf", extra="gguf", what=f"{checkpoint.target}: reading GGUF")
    try:
        with without_bars(), _reading_quickly(architecture):
            config = transformers.AutoConfig.from_pretrained(
                str(path.parent), gguf_file=path.name, local_files_only=True
            )
    except Exception as error:
        _refuse_damaged(checkpoint, path)
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: transformers cannot make a config of this {architecture} file: "
            f"{type(error).__name__}: {error}",
            "use the safetensors checkpoint that it was converted from",
        ) from error
    _shorten_numbers(config)
    found: transformers.PretrainedConfig = config
    return found


def gguf_class(config: transformers.PretrainedConfig) -> type[transformers.PreTrainedModel] | None:
    """Return the class with a language model's head, which GGUF files hold; None without one."""
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        return None
    found = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return found[0] if isinstance(found, tuple) else found


def memory_note(checkpoint: Checkpoint, dtype: torch.dtype) -> str:
    """Say how much memory a GGUF file takes once its blocks are unpacked."""
    path = gguf_path(checkpoint)
    elements = sum(int(item.n_elements) for item in short_reader()(path).tensors)
    unpacked, stored = elements * dtype.itemsize, path.stat().st_size
    named = str(dtype).removeprefix("torch.")
    return (
        f"{checkpoint.target}: {_size(stored)} of GGUF are unpacked to {named}, "
        f"which takes {_size(unpacked)} of memory"
    )


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep the legacy reader's progress bar off the terminal: it heeds no setting of theirs."""
    reader: Any = legacy
    shown: Callable[..., Any] = reader.tqdm
    reader.tqdm = partial(shown, disable=True)
    try:
        yield
    finally:
        reader.tqdm = shown


def _metadata(checkpoint: Checkpoint, path: Path) -> Mapping[str, Any]:
    if read_gguf_metadata is None:
        raise NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{checkpoint.target}: reading GGUF needs a newer transformers",
            "pip install -U transformers",
        )
    try:
        if not path.is_file():  # a pipe would be waited for without end
            raise ValueError(f"{path} is no regular file")  # noqa: TRY301  # one kind of answer
        metadata, _ = read_gguf_metadata(str(path))
    except Exception as error:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: the GGUF header cannot be read: {_reason(error, path)}",
            "fetch the file again",
        ) from error
    return metadata


def _reading_quickly(architecture: str) -> AbstractContextManager[None]:
    """Choose how the file is opened, by transformers' own list of readers; no verdict."""
    return nullcontext() if architecture in GGUF_CONFIG_ARCHS else short_lists()


def _refuse_damaged(checkpoint: Checkpoint, path: Path) -> None:
    """Raise where the reason is the file and no lack of transformers'."""
    if find_spec("gguf") is None:
        return
    try:
        short_reader()(path)
    except (ValueError, IndexError, KeyError, OverflowError, struct.error) as error:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: the GGUF file is damaged: it is cut off, or its header is wrong",
            "fetch the file again",
        ) from error


def _refuse_parts(checkpoint: Checkpoint, metadata: Mapping[str, Any]) -> None:
    parts = metadata.get("split.count", 1)
    if parts > 1:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{checkpoint.target}: is one of {parts} parts, and transformers reads one file",
            "join them first: llama-gguf-split --merge FIRST_PART WHOLE_FILE",
        )


def _reason(error: Exception, path: Path) -> str:
    if path.is_file() and not path.stat().st_size:
        return "it is empty"
    if isinstance(error, struct.error | IndexError | UnicodeDecodeError):  # reads past the end
        return "it is cut off, or announces more than it holds"
    said = str(error).replace(str(path), "it").rstrip(".")
    return said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"


def _check_known(checkpoint: Checkpoint, architecture: str) -> None:
    known = sorted({*legacy.GGUF_SUPPORTED_ARCHITECTURES, *GGUF_CONFIG_ARCHS} - _NO_ARCHITECTURES)
    if architecture not in known:
        raise NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: transformers {transformers.__version__} does not read GGUF "
            f"files of the architecture {architecture!r}; it reads {', '.join(known)}",
            "use the safetensors checkpoint that it was converted from",
        )


_NO_ARCHITECTURES = frozenset({"general", "tokenizer"})
"""Groups of metadata that stand in transformers' list."""


def _shorten_numbers(config: transformers.PretrainedConfig) -> None:
    """Read numbers as they were before the file made float32 of them: 1e-05, not 9.9999997e-06."""
    for name, value in vars(config).items():
        if isinstance(value, float) and math.isfinite(value) and float(np.float32(value)) == value:
            setattr(config, name, float(str(np.float32(value))))


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return ""
