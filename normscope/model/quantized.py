"""Checkpoint with quantized weights -> why they cannot be run here."""

from collections.abc import Mapping
from typing import Any

from transformers.quantizers.auto import AutoHfQuantizer

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.model.packages import missing_packages


def quantization_method(checkpoint: Checkpoint) -> str | None:
    """Return what a config calls the way its weights are quantized; None where they are not."""
    found = (checkpoint.config or {}).get("quantization_config")
    if not isinstance(found, Mapping):
        return None
    return str(found.get("quant_method") or _by_flags(found) or "an unnamed method")


def _by_flags(found: Mapping[str, Any]) -> str | None:
    """Early bitsandbytes checkpoints only say how many bits."""
    flags = ("load_in_8bit", "load_in_4bit")
    return "bitsandbytes" if any(found.get(flag) for flag in flags) else None


def refuse_quantized(checkpoint: Checkpoint, device: str) -> None:
    """Raise `NormscopeError` where the weights are quantized in a way that cannot be run here.

    transformers is asked, as it would be while loading: it knows the packages and the devices that
    each method needs.
    """
    method = quantization_method(checkpoint)
    if method is None:
        return
    stored = dict((checkpoint.config or {})["quantization_config"])
    try:
        known = AutoHfQuantizer.supports_quant_method(stored)
        if known:
            AutoHfQuantizer.from_config(stored, pre_quantized=True).validate_environment(
                device_map={"": device}, weights_only=True
            )
    except Exception as error:
        raise not_runnable(checkpoint, error) from error
    if not known:
        raise not_runnable(checkpoint, "transformers does not know the method")


def not_runnable(checkpoint: Checkpoint, reason: Exception | str) -> NormscopeError:
    """Return the failure of a checkpoint whose quantized weights cannot be run."""
    packages = missing_packages(reason) if isinstance(reason, Exception) else ()
    said = next((line.strip() for line in str(reason).splitlines() if line.strip()), "no reason")
    why = f"it needs the package {' and '.join(packages)}" if packages else said
    return NormscopeError(
        FailureKind.MISSING_DEPENDENCY,
        f"{checkpoint.target}: its weights are quantized ({quantization_method(checkpoint)}) "
        f"and cannot be run here: {why}",
        f"normscope inspect {checkpoint.target} works without; to measure, take the checkpoint "
        "that it was quantized from",
    )
