"""Checkpoint -> module with its weights."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.limits import Limits, failure_of_size, making_config
from normscope.model.budget import counted_modules
from normscope.model.build import build_on_meta, chosen_dtype
from normscope.model.configuration import model_class, read_config, refused
from normscope.model.factory import call_factory
from normscope.model.gguf import gguf_path, memory_note, without_bars
from normscope.model.offload import (
    Keeper,
    Offload,
    check_offload,
    is_offloaded,
    offload_options,
)
from normscope.model.packages import need_package
from normscope.model.quantized import not_runnable, quantization_method, refuse_quantized
from normscope.model.quiet import quiet_transformers
from normscope.model.sealed import sealed
from normscope.model.shards import check_index
from normscope.model.snapshot import fetched_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A module with the checkpoint's weights, in eval mode."""

    target: str
    module: nn.Module
    config: transformers.PretrainedConfig | None
    class_name: str
    model_type: str | None
    dtype: str
    device: str
    parameters: int
    skeleton: nn.Module | None = None
    """The same module on `meta`, where the weights come from their files as they are used."""


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    offload: Offload | None = None,
    attention: str | None = None,
    limits: Limits | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> LoadedModel:
    """Load the checkpoint's model with all its weights.

    With `offload` only a part of them stays in memory. `attention` is transformers' name of a way
    to compute attention; `tell` is given what the user should know before the load. Raises
    `NormscopeError`: `unsafe_weights` where there are only pickled ones, `not_found` where there
    are none, `corrupt` where tensors are missing or files are damaged, `missing_dependency` where a
    package is missing or quantized weights cannot be run; `UsageError` for an `offload` or an
    `attention` that cannot be had.
    """
    if offload is not None:
        check_offload(checkpoint, offload, device)
    if checkpoint.kind is CheckpointKind.PYTHON:
        module, _ = call_factory(checkpoint)
        return _described(checkpoint, module, None, device)
    limits = limits or Limits()
    directory = _with_weights(checkpoint)
    check_index(checkpoint.target, directory, limits)
    # A kernel that the user names is theirs to fetch and run.
    kernels = attention is not None and "/" in attention and not checkpoint.offline
    with (
        quiet_transformers(),
        sealed(checkpoint.target, trust_remote_code=trust_remote_code, kernels=kernels),
        counted_modules(limits),
    ):
        with making_config(limits):
            config = read_config(checkpoint, trust_remote_code=trust_remote_code, tell=tell)
        refuse_quantized(checkpoint, device)
        options: dict[str, Any] = {
            "dtype": chosen_dtype(checkpoint, config, dtype),
            "trust_remote_code": trust_remote_code,
        }
        if attention is not None:
            options["attn_implementation"] = attention
        if checkpoint.kind is CheckpointKind.GGUF:
            options |= _gguf_options(checkpoint, options["dtype"], tell)
        with _offloading(offload) as (more, keep):
            module, info = _from_files(checkpoint, config, directory, options | more)
            keep(module)
    _require_all(checkpoint, info["missing_keys"], info["mismatched_keys"])
    if not is_offloaded(module):
        return _described(checkpoint, module, config, device)
    built = build_on_meta(checkpoint, dtype=dtype, trust_remote_code=trust_remote_code)
    return replace(_described(checkpoint, module, config, None), skeleton=built.module)


def _gguf_options(
    checkpoint: Checkpoint, dtype: torch.dtype, tell: Callable[[str], None]
) -> dict[str, Any]:
    need_package("gguf", extra="gguf", what=f"{checkpoint.target}: reading GGUF")
    need_package("accelerate", extra="gguf", what=f"{checkpoint.target}: reading GGUF")
    tell(memory_note(checkpoint, dtype))
    return {"gguf_file": gguf_path(checkpoint).name, "use_safetensors": None}


def _offloading(
    offload: Offload | None,
) -> AbstractContextManager[tuple[dict[str, Any], Keeper]]:
    return nullcontext(({}, lambda _: None)) if offload is None else offload_options(offload)


def _from_files(
    checkpoint: Checkpoint,
    config: transformers.PretrainedConfig,
    directory: Path,
    options: dict[str, Any],
) -> tuple[nn.Module, dict[str, Any]]:
    """Return the module, and transformers' account of what the files lacked."""
    usual = {
        "local_files_only": True,
        "use_safetensors": True,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,  # they are refused below, by name
    }
    try:
        chosen: Any = model_class(checkpoint, config) or transformers.AutoModel
        with without_bars():
            module, info = chosen.from_pretrained(str(directory), config=config, **usual | options)
    except NormscopeError:
        raise
    except Exception as error:
        if failure_of_size(error) is FailureKind.OUT_OF_MEMORY:
            raise NormscopeError(
                FailureKind.OUT_OF_MEMORY,
                f"{checkpoint.target}: the weights do not fit in memory",
                "leave most of them in their files: --max-memory 2GB",
            ) from error
        raise _damaged(checkpoint, error, options.get("attn_implementation")) from error
    return module, info


def _described(
    checkpoint: Checkpoint,
    module: nn.Module,
    config: transformers.PretrainedConfig | None,
    device: str | None,
) -> LoadedModel:
    """Without a `device` the module stays where it is."""
    module = module.eval() if device is None else module.eval().to(device)
    floating = (value.dtype for value in module.parameters() if value.is_floating_point())
    return LoadedModel(
        target=checkpoint.target,
        module=module,
        config=config if config is not None else getattr(module, "config", None),
        class_name=type(module).__qualname__,
        model_type=checkpoint.model_type or getattr(config, "model_type", None),
        dtype=str(next(floating, torch.float32)).removeprefix("torch."),
        device=device or "cpu",
        parameters=sum(value.numel() for value in module.parameters()),
    )


# Where the weights lie.


def _with_weights(checkpoint: Checkpoint) -> Path:
    directory = checkpoint.directory
    if directory is None or checkpoint.kind is CheckpointKind.TYPE:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{checkpoint.target}: a model type has no weights",
            f"normscope inspect {checkpoint.target} works without; measuring needs a checkpoint",
        )
    if checkpoint.repository:
        directory = fetched_directory(checkpoint)
    if checkpoint.kind is CheckpointKind.GGUF or any(directory.glob("*.safetensors")):
        return directory
    if any(directory.glob("*.bin")) or any(directory.glob("*.pt")):
        raise NormscopeError(
            FailureKind.UNSAFE_WEIGHTS,
            f"{checkpoint.target}: the weights are pickled, and loading them can run code",
            "convert them to safetensors with transformers' save_pretrained",
        )
    raise NormscopeError(
        FailureKind.NOT_FOUND,
        f"{checkpoint.target}: there are no weights beside config.json",
        f"normscope inspect {checkpoint.target} works without",
    )


# What came out of the files.


def _require_all(
    checkpoint: Checkpoint, missing: Collection[str], mismatched: Collection[tuple[Any, ...] | str]
) -> None:
    if missing:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: the weights lack {_listed(sorted(missing))}",
            "they would be filled with fresh values; save the checkpoint again",
        )
    if mismatched:
        # transformers 5 lists (name, shape, shape), 4 the names alone
        names = sorted(entry if isinstance(entry, str) else str(entry[0]) for entry in mismatched)
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: of another shape than the config says: {_listed(names)}",
            "config.json and weights belong to different models",
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _damaged(checkpoint: Checkpoint, error: Exception, attention: str | None) -> Exception:
    lines = [line for line in str(error).splitlines() if line.strip()] or ["no message"]
    if attention is not None and any(word in lines[0] for word in _OF_ATTENTION):
        return UsageError(
            f"{checkpoint.target}: --attn-implementation {attention} cannot be had: {lines[0]}",
            "eager can be had for every model",
        )
    if quantization_method(checkpoint) is not None:
        return not_runnable(checkpoint, error)
    if isinstance(error, ImportError):
        return refused(checkpoint, "loading it", error)
    return NormscopeError(
        FailureKind.CORRUPT,
        f"{checkpoint.target}: the weights cannot be loaded: {type(error).__name__}: {lines[0]}",
        "fetch or save the checkpoint again",
    )


_OF_ATTENTION = ("attn_implementation", "ttention", "kernels")
"""What stands in transformers' refusals of an attention, and only there while one is asked for."""
