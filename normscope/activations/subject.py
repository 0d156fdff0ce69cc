"""nn.Module -> what a report calls it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.jit._trace import TracedModule

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
    """Return the module inside the wrappers of torch.compile and data parallelism.

    Raises `NormscopeError` for a scripted module or a module that holds one: TorchScript runs
    outside Python, and its operations cannot be told apart.
    """
    inner = _inside(module)
    while inner is not None:
        module, inner = inner, _inside(inner)
    for path, child in module.named_modules():
        if _is_scripted(child, inner=bool(path)):
            called = getattr(child, "original_name", type(child).__name__)
            raise NormscopeError(
                FailureKind.TRACE_FAILED,
                f"{path or 'the module'} is TorchScript ({called}), which cannot be measured",
                "give the nn.Module that it was made from",
            )
    return module


def _inside(module: nn.Module) -> nn.Module | None:
    # _orig_mod: torch.compile's OptimizedModule
    name = "module" if isinstance(module, _PARALLEL) else "_orig_mod"
    found = getattr(module, name, None)
    return found if isinstance(found, nn.Module) else None


_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def _is_scripted(module: nn.Module, *, inner: bool) -> bool:
    """Inside a model, what a traced module runs is seen as its own operations."""
    traced = isinstance(module, TracedModule)
    return isinstance(module, torch.jit.ScriptModule) and not (inner and traced)


def device_of(module: nn.Module) -> str:
    """Return the kind of device that the parameters lie on."""
    kinds = (value.device.type for value in module.parameters())
    return next((kind for kind in kinds if kind != "meta"), "cpu")  # meta: offloaded


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
