"""Checkpoint larger than memory -> a module whose weights come from their files as they are used.

accelerate's hooks put a layer's weights in place for its run and take them away again: outside it
they are on `meta`.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import UsageError
from normscope.model.packages import need_package

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """Where the weights of a model stay while it runs."""

    device_map: str = "auto"
    """One of accelerate's ways to fill accelerators, memory and disk: see `DEVICE_MAPS`."""
    memory: int | None = None
    """Most bytes of weights that stay in the machine's memory; the others stay in their files, and
    no accelerator is used. None for all that is free."""


def check_offload(checkpoint: Checkpoint, offload: Offload, device: str) -> None:
    """Raise `UsageError` where a target or a device cannot be had with it, `NormscopeError` where
    accelerate is not there.
    """
    if offload.device_map not in DEVICE_MAPS:
        known = ", ".join(DEVICE_MAPS)
        raise UsageError(f"there is no device map {offload.device_map!r}", f"they are {known}")
    if checkpoint.kind is CheckpointKind.PYTHON:
        raise UsageError(
            f"{checkpoint.target}: a module that your code builds is already in memory",
            "leave out --device-map and --max-memory",
        )
    if checkpoint.kind is CheckpointKind.GGUF:
        raise UsageError(
            f"{checkpoint.target}: transformers cannot leave the blocks of a GGUF file in it",
            "leave out --device-map and --max-memory",
        )
    if torch.device(device).type != "cpu":
        raise UsageError(
            f"a device map chooses the devices, and --device {device} does too",
            "leave out --device",
        )
    need_package("accelerate", extra="large", what=f"{checkpoint.target}: a device map")


Keeper = Callable[[nn.Module], None]
"""Is given the module that was loaded."""


@contextmanager
def offload_options(offload: Offload) -> Iterator[tuple[dict[str, Any], Keeper]]:
    """Yield what `from_pretrained` is called with, and what its module is given to.

    Weights that it must convert (experts stored one by one) are written to a temporary folder that
    lives as long as the module.
    """
    folder = TemporaryDirectory(prefix="normscope-", ignore_cleanup_errors=True)
    kept = False

    def keep(module: nn.Module) -> None:
        nonlocal kept
        kept = True
        finalize(module, folder.cleanup)
        _hide_loading(module)

    options: dict[str, Any] = {"device_map": offload.device_map, "offload_folder": folder.name}
    if offload.memory is not None:
        options["max_memory"] = {"cpu": offload.memory}
    log = logging.getLogger("accelerate")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield options, keep
    finally:
        log.setLevel(level)
        if not kept:
            folder.cleanup()


def is_offloaded(module: nn.Module) -> bool:
    """Tell whether some of the weights are only there while they are used."""
    hooked = any(hasattr(child, "_hf_hook") for child in module.modules())
    return hooked and any(value.is_meta for value in module.parameters())


class StoredTensors(Mapping[str, torch.Tensor]):
    """Tensors of a module by name; those that are only there while used are read when asked for."""

    def __init__(self, module: nn.Module, held: Mapping[str, torch.Tensor]) -> None:
        self._module = module
        self._held = held

    def __getitem__(self, name: str) -> torch.Tensor:
        found = self._held[name]
        is_away = found.is_meta and isinstance(found, nn.Parameter)
        return stored_parameter(self._module, name) if is_away else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def stored_parameter(module: nn.Module, name: str) -> torch.Tensor:
    """Return a parameter of a module, from its file where it is only there while it is used.

    Raises `KeyError` where the module has none of that name.
    """
    found = dict(module.named_parameters(remove_duplicate=False))[name]
    if not found.is_meta:
        return found
    from transformers.integrations import accelerate

    load: Any = accelerate.load_offloaded_parameter
    with _disable_current_modes():
        stored: torch.Tensor = load(module, name)
    return stored.to(found.dtype)


def _hide_loading(module: nn.Module) -> None:
    """Keep what accelerate computes in its hooks from being taken for the model's operations."""
    for child in module.modules():
        hook = getattr(child, "_hf_hook", None)
        if hook is not None:
            hook.pre_forward = partial(_hidden, hook.pre_forward)
            hook.post_forward = partial(_hidden, hook.post_forward)


def _hidden(act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with _disable_current_modes():
        return act(*args, **kwargs)
