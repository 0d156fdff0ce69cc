"""nn.Module -> what a report calls it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import ModelFacts
from normscope.versions import versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured, as the report names it."""

    target: str
    versions: Mapping[str, str]
    model: ModelFacts


def subject_of(module: nn.Module) -> Subject:
    """Describe a live module that came from no target."""
    floating = (value.dtype for value in module.parameters() if value.is_floating_point())
    model_type = getattr(getattr(module, "config", None), "model_type", None)
    name = type(module).__qualname__
    facts = ModelFacts(
        class_name=name,
        model_type=model_type if isinstance(model_type, str) else None,
        revision=None,
        parameters=sum(value.numel() for value in module.parameters()),
        dtype=str(next(floating, torch.float32)).removeprefix("torch."),
    )
    return Subject(target=name, versions=versions(), model=facts)


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module inside a torch.compile wrapper, whose hooks would never fire.

    Raises `NormscopeError` for a scripted module, whose operations cannot be read.
    """
    if isinstance(module, torch.jit.ScriptModule):
        raise NormscopeError(
            FailureKind.TRACE_FAILED,
            "a TorchScript module cannot be measured",
            "give the nn.Module that it was made from",
        )
    original = getattr(module, "_orig_mod", None)
    return original if isinstance(original, nn.Module) else module


def device_of(module: nn.Module) -> str:
    """Return the kind of device that the parameters lie on."""
    return next((value.device.type for value in module.parameters()), "cpu")


def usable_device(name: str) -> str:
    """Return the device to run on; `auto` is the first accelerator that is there.

    Raises `UsageError` for one that is not.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next((device for device, usable in there.items() if usable), "cpu")
    kind = name.partition(":")[0]
    if kind != "cpu" and not there.get(kind, False):
        known = ", ".join(("auto", "cpu", *there))
        raise UsageError(f"there is no device {name!r} here", f"the devices are {known}")
    return name
