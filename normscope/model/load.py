"""Checkpoint -> module with its weights, and its tokenizer."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.model.build import chosen_dtype
from normscope.model.configuration import model_class, read_config, refused
from normscope.model.factory import call_factory
from normscope.model.quiet import quiet_transformers


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


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load the checkpoint's model with all its weights.

    Raises `NormscopeError`: `unsafe_weights` where there are only pickled ones, `not_found` where
    there are none, `corrupt` where tensors are missing or files are damaged.
    """
    if checkpoint.kind is CheckpointKind.PYTHON:
        module, _ = call_factory(checkpoint)
        return _described(checkpoint, module, None, device)
    directory = _with_weights(checkpoint)
    with quiet_transformers():
        config = read_config(checkpoint, trust_remote_code=trust_remote_code)
        options: dict[str, Any] = {"dtype": chosen_dtype(checkpoint, config, dtype)}
        if trust_remote_code:
            options["trust_remote_code"] = True
        module, info = _from_files(checkpoint, config, directory, options)
    _require_all(checkpoint, info["missing_keys"], info["mismatched_keys"])
    return _described(checkpoint, module, config, device)


def _from_files(
    checkpoint: Checkpoint,
    config: transformers.PretrainedConfig,
    directory: Path,
    options: dict[str, Any],
) -> tuple[nn.Module, dict[str, Any]]:
    """Return the module, and transformers' account of what the files lacked."""
    try:
        chosen: Any = model_class(checkpoint, config) or transformers.AutoModel
        module, info = chosen.from_pretrained(
            str(directory),
            config=config,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, by name
            **options,
        )
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise NormscopeError(
            FailureKind.OUT_OF_MEMORY, f"{checkpoint.target}: the weights do not fit in memory"
        ) from error
    except Exception as error:
        raise _damaged(checkpoint, error) from error
    return module, info


def load_tokenizer(checkpoint: Checkpoint) -> transformers.PreTrainedTokenizerBase | None:
    """Return the checkpoint's tokenizer, or None where it has none."""
    if checkpoint.directory is None:
        return None
    directory = _fetched(checkpoint) if checkpoint.repository else checkpoint.directory
    with quiet_transformers():
        try:
            found: transformers.PreTrainedTokenizerBase = (
                transformers.AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
            )
        except ImportError as error:
            raise refused(checkpoint, "the tokenizer", error) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
    # Without any file transformers may still make one, which knows no token.
    return found if len(found.get_vocab()) > len(found.all_special_tokens) else None


def _described(
    checkpoint: Checkpoint,
    module: nn.Module,
    config: transformers.PretrainedConfig | None,
    device: str,
) -> LoadedModel:
    module = module.eval().to(device)
    floating = (value.dtype for value in module.parameters() if value.is_floating_point())
    return LoadedModel(
        target=checkpoint.target,
        module=module,
        config=config if config is not None else getattr(module, "config", None),
        class_name=type(module).__qualname__,
        model_type=checkpoint.model_type or getattr(config, "model_type", None),
        dtype=str(next(floating, torch.float32)).removeprefix("torch."),
        device=device,
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
        directory = _fetched(checkpoint)
    if any(directory.glob("*.safetensors")):
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


def _fetched(checkpoint: Checkpoint) -> Path:
    """Bring a repository's safetensors and tokenizer into the cache."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    offline = checkpoint.offline or bool(huggingface_hub.constants.HF_HUB_OFFLINE)
    try:
        return Path(
            huggingface_hub.snapshot_download(
                checkpoint.repository or "",
                revision=checkpoint.revision,
                local_files_only=offline,
                allow_patterns=["*.safetensors", "*.json", "*.model", "*.txt", "*.py"],
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise NormscopeError(
            FailureKind.OFFLINE,
            f"{checkpoint.target}: its weights are not in the cache and cannot be fetched",
            "check the connection, or give a local directory",
        ) from error


# What came out of the files.


def _require_all(
    checkpoint: Checkpoint, missing: Collection[str], mismatched: Collection[tuple[Any, ...]]
) -> None:
    if missing:
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: the weights lack {_listed(sorted(missing))}",
            "they would be filled with fresh values; save the checkpoint again",
        )
    if mismatched:
        names = sorted(str(entry[0]) for entry in mismatched)
        raise NormscopeError(
            FailureKind.CORRUPT,
            f"{checkpoint.target}: of another shape than the config says: {_listed(names)}",
            "config.json and weights belong to different models",
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _damaged(checkpoint: Checkpoint, error: Exception) -> NormscopeError:
    if isinstance(error, ImportError):
        return refused(checkpoint, "loading it", error)
    lines = [line for line in str(error).splitlines() if line.strip()] or ["no message"]
    return NormscopeError(
        FailureKind.CORRUPT,
        f"{checkpoint.target}: the weights cannot be loaded: {type(error).__name__}: {lines[0]}",
        "fetch or save the checkpoint again",
    )
