"""Checkpoint -> transformers config and class."""

import difflib
import importlib
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.limits import failure_of_size
from normscope.model.gguf import gguf_class, read_gguf_config
from normscope.model.packages import how_to_install, missing_packages
from normscope.model.remote_code import refused_code, tell_code

_MACHINE_KEYS = frozenset(
    {
        "_attn_implementation",
        "_attn_implementation_internal",
        "_experts_implementation",
        "_experts_implementation_internal",
        "attn_implementation",
        "experts_implementation",
        "kernel_config",
        "use_kernels",
    }
)
"""What a saved config may say of kernels: the choice of another machine."""
_ORIGIN_KEYS = frozenset({"_commit_hash", "_name_or_path", "auto_map", "transformers_weights"})
"""What a saved config may say of where code and weights lie: they are looked for elsewhere."""


def known_model_types() -> tuple[str, ...]:
    """Return the model types that the installed transformers knows, sorted."""
    return tuple(sorted(CONFIG_MAPPING.keys()))


def read_config(
    checkpoint: Checkpoint,
    *,
    trust_remote_code: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> transformers.PretrainedConfig:
    """Return the checkpoint's config as an instance of its class.

    `tell` is given what code of the checkpoint's is about to run, where it is trusted. Raises
    `NormscopeError` for an unknown model type, for remote code that is not trusted, and for values
    that the config class refuses.
    """
    if checkpoint.kind is CheckpointKind.GGUF:
        return read_gguf_config(checkpoint)
    # transformers 5 writes infinity as {"__float__": "Infinity"} (Mamba 2's time_step_limit).
    # 4.56 has no reader for it, and its configs none of that.
    decoded = getattr(transformers.PretrainedConfig, "_decode_special_floats", dict)
    raw = _settings(decoded(dict(checkpoint.config or {})))
    native = _native_config_class(checkpoint)
    if names_code(checkpoint) and (native is None or trust_remote_code):
        if not trust_remote_code:
            raise refused_code(checkpoint, "the model")
        tell_code(checkpoint, (checkpoint.config or {})["auto_map"], tell)
        return _remote_config(checkpoint)
    if native is None:
        raise _unknown_type(checkpoint)
    try:
        return native.from_dict(raw) if raw else native()
    except Exception as error:
        raise refused(checkpoint, native.__name__, error) from error


def names_code(checkpoint: Checkpoint) -> bool:
    """Tell whether a config says that code beside it defines the model."""
    return "auto_map" in (checkpoint.config or {})


def _settings(value: Any) -> Any:
    """Return a config without what it says of machines and origins, in any of its parts."""
    if isinstance(value, dict):
        left_out = _MACHINE_KEYS | _ORIGIN_KEYS
        return {key: _settings(item) for key, item in value.items() if key not in left_out}
    return [_settings(item) for item in value] if isinstance(value, list) else value


def model_class(
    checkpoint: Checkpoint, config: transformers.PretrainedConfig
) -> type[transformers.PreTrainedModel] | None:
    """Return the class that the checkpoint was saved from, or the one for its model type.

    None where only AutoModel can tell (remote code).
    """
    if checkpoint.kind is CheckpointKind.GGUF and (headed := gguf_class(config)) is not None:
        return headed
    for name in checkpoint.architectures:
        named = _class_named(name)
        if named is not None:
            return named
    mapping = modeling_auto.MODEL_MAPPING
    try:
        found = mapping.get(type(config), None)
    except ValueError:  # the class is not exported
        found = None
    if found is None:
        return _class_by_name(config) or next(_classes_for(type(config)), None)
    # AutoModel of 5.24 fails on a choice of classes where no architecture is named (Funnel).
    return found[0] if isinstance(found, tuple) else found


def refused(checkpoint: Checkpoint, what: str, error: Exception) -> NormscopeError:
    """Return the failure for a config that its own class does not accept."""
    if isinstance(error, NormscopeError):
        return error
    packages = missing_packages(error)
    if packages:
        noun = "package" if len(packages) == 1 else "packages"
        return NormscopeError(
            FailureKind.MISSING_DEPENDENCY,
            f"{checkpoint.target}: {what} needs the {noun} {' and '.join(packages)}",
            how_to_install(packages),
        )
    reason = f"{type(error).__name__}: {_first_sentence(error)}{_place(error)}"
    kind = failure_of_size(error)
    if kind is not None:
        return NormscopeError(
            kind,
            f"{checkpoint.target}: {what} of this config is larger than fits: {reason}",
            "look for a number that is too long in its config.json",
        )
    if checkpoint.kind is CheckpointKind.TYPE:
        return NormscopeError(
            FailureKind.UNKNOWN_ARCHITECTURE,
            f"{checkpoint.target}: the default config of {what} does not build: {reason}",
            "give a checkpoint's own config.json, which has the missing fields",
        )
    return NormscopeError(
        FailureKind.UNKNOWN_ARCHITECTURE,
        f"{checkpoint.target}: {what} does not build from this config: {reason}",
        "compare it with the config.json of a checkpoint that loads",
    )


def _native_config_class(checkpoint: Checkpoint) -> type[transformers.PretrainedConfig] | None:
    if checkpoint.model_type is not None:
        if checkpoint.model_type not in CONFIG_MAPPING:
            return None
        found: type[transformers.PretrainedConfig] = CONFIG_MAPPING[checkpoint.model_type]
        return found
    for name in checkpoint.architectures:
        named = getattr(_class_named(name), "config_class", None)
        if isinstance(named, type) and issubclass(named, transformers.PretrainedConfig):
            return named
    return None


def _class_named(name: str) -> type[transformers.PreTrainedModel] | None:
    """Return the model of that name: one of a family, and nothing else that transformers has."""
    if not name.isidentifier() or name.startswith("_"):
        return None
    found = getattr(transformers, name, None)
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    return found if is_model and found is not transformers.PreTrainedModel else None


def _remote_config(checkpoint: Checkpoint) -> transformers.PretrainedConfig:
    source = checkpoint.repository or str(checkpoint.directory)
    try:
        config = transformers.AutoConfig.from_pretrained(
            source,
            revision=checkpoint.commit or checkpoint.revision,
            trust_remote_code=True,
            local_files_only=checkpoint.offline or checkpoint.repository is None,
        )
    except Exception as error:
        raise refused(checkpoint, "the checkpoint's own code", error) from error
    found: transformers.PretrainedConfig = config
    return found


def _class_by_name(
    config: transformers.PretrainedConfig,
) -> type[transformers.PreTrainedModel] | None:
    """Return the class that the mapping knows by name only (Evolla, Voxtral's text in 5.24)."""
    named = modeling_auto.MODEL_MAPPING_NAMES.get(config.model_type)
    if not isinstance(named, str):
        return None
    family = type(config).__module__
    if not family.startswith("transformers."):  # the checkpoint's own code
        return None
    beside = importlib.import_module(family.replace(".configuration_", ".modeling_"))
    found: type[transformers.PreTrainedModel] | None = getattr(beside, named, None)
    return found


def _classes_for(config_class: type) -> Any:
    """Yield the model classes of the other Auto mappings (TrOCR, Pop2Piano have no AutoModel)."""
    for name, mapping in vars(modeling_auto).items():
        if not (name.startswith("MODEL_") and isinstance(mapping, Mapping)):
            continue
        if name.endswith("_MAPPING") and config_class in mapping:
            found = mapping[config_class]
            yield found[0] if isinstance(found, tuple) else found


def _unknown_type(checkpoint: Checkpoint) -> NormscopeError:
    name = checkpoint.model_type or ", ".join(checkpoint.architectures)
    nearest = difflib.get_close_matches(name, known_model_types(), n=3, cutoff=0.5)
    version = transformers.__version__
    newer = "a newer transformers may know it: pip install -U transformers"
    return NormscopeError(
        FailureKind.UNKNOWN_ARCHITECTURE,
        f"{checkpoint.target}: transformers {version} has no model type {name!r}",
        "did you mean " + ", ".join(nearest) + "?" if nearest else newer,
    )


def _first_sentence(error: Exception) -> str:
    """Return the first line of a message, with the next where it only announces that one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = 2 if lines and lines[0].endswith(":") else 1
    return " ".join(lines[:told]) or "no message"


_MODELS = "models"
"""The folder of transformers that holds every family's own code."""


def _place(error: Exception) -> str:
    """Return the line of transformers that failed: it names the field that an error leaves out."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if _MODELS in Path(frame.filename).parts and frame.line
    ]
    if not frames:
        return ""
    line = frames[-1].line or ""
    if line.startswith("raise "):  # that message says all by itself
        return ""
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}: {line})"
