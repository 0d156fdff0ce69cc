"""Checkpoint -> module on `meta`: the code and config of a model, without its weights."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
import transformers
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Assumption
from normscope.limits import Limits, making_config
from normscope.model.budget import counted_modules
from normscope.model.configs import choose_experts, part_for
from normscope.model.configuration import model_class, read_config, refused
from normscope.model.defaults import fill_in
from normscope.model.eps_settings import eps_settings
from normscope.model.factory import call_factory
from normscope.model.quiet import quiet_transformers
from normscope.model.remote_code import own_revision
from normscope.model.sealed import sealed
from normscope.model.substitutions import substitutions

LARGEST_REAL = 1 << 20
"""Elements up to which a buffer is computed for real instead of staying on `meta`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModel:
    """A module to look at; its parameters are on `meta` unless the user's own code built it."""

    target: str
    module: nn.Module
    config: transformers.PretrainedConfig | None
    class_name: str
    model_type: str | None
    dtype: str
    parameters: int
    """Number of distinct parameter elements."""
    inputs: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None
    """Positional and keyword inputs that a `py:` factory gave along."""
    assumed: tuple[str, ...] = ()
    """What was filled into a default config that cannot run as it is."""
    substituted: tuple[Assumption, ...] = ()
    """What was chosen in place of what the config asks for."""
    eps_settings: tuple[tuple[str, float | None], ...] = ()
    """Dotted key and value of every number of the config that is an eps; None for a part of the
    config that has none."""


def build_on_meta(
    checkpoint: Checkpoint,
    *,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    limits: Limits | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> BuiltModel:
    """Build the checkpoint's model with its parameters on `meta`.

    `dtype` is the checkpoint's own unless given, float32 where it names none; `tell` is given what
    code of the checkpoint's is about to run, where it is trusted. Raises `NormscopeError` where the
    class is unknown, needs a package, or refuses the config, and `OverLimit` beyond `limits`.
    """
    if checkpoint.kind is CheckpointKind.PYTHON:
        module, inputs = call_factory(checkpoint)
        return _described(checkpoint, module, None, inputs)
    limits = limits or Limits()
    with (
        quiet_transformers(),
        sealed(checkpoint.target, trust_remote_code=trust_remote_code),
        counted_modules(limits),
    ):
        with making_config(limits):
            config = read_config(checkpoint, trust_remote_code=trust_remote_code, tell=tell)
        assumed = fill_in(config) if checkpoint.kind is CheckpointKind.TYPE else ()
        chosen = chosen_dtype(checkpoint, config, dtype)
        module = _build(checkpoint, config, chosen, trust_remote_code)
    return replace(
        _described(checkpoint, module, config, None),
        assumed=assumed,
        substituted=substitutions(checkpoint, config, module),
        eps_settings=eps_settings(config),
    )


def _described(
    checkpoint: Checkpoint,
    module: nn.Module,
    config: transformers.PretrainedConfig | None,
    inputs: tuple[tuple[Any, ...], Mapping[str, Any]] | None,
) -> BuiltModel:
    floating = (value.dtype for value in module.parameters() if value.is_floating_point())
    return BuiltModel(
        target=checkpoint.target,
        module=module,
        config=config if config is not None else getattr(module, "config", None),
        class_name=type(module).__qualname__,
        model_type=checkpoint.model_type or getattr(config, "model_type", None),
        dtype=str(next(floating, torch.float32)).removeprefix("torch."),
        parameters=sum(value.numel() for value in module.parameters()),
        inputs=inputs,
    )


def chosen_dtype(
    checkpoint: Checkpoint, config: transformers.PretrainedConfig, wanted: str | None
) -> torch.dtype:
    """Return the dtype asked for, else the checkpoint's, else float32."""
    if wanted is None:
        # `type:` has no weights that a dtype could belong to.
        named = None if checkpoint.kind is CheckpointKind.TYPE else getattr(config, "dtype", None)
        wanted = str(named).removeprefix("torch.") if named is not None else "float32"
    found = getattr(torch, wanted, None)
    if isinstance(found, torch.dtype) and found.is_floating_point and found.itemsize > 1:
        return found
    return torch.float32


def _build(
    checkpoint: Checkpoint,
    config: transformers.PretrainedConfig,
    dtype: torch.dtype,
    trust_remote_code: bool,
) -> nn.Module:
    choose_experts(config)
    try:
        chosen = model_class(checkpoint, config)
    except Exception as error:
        raise refused(checkpoint, type(config).__name__, error) from error
    if chosen is None:
        options: dict[str, Any] = {"dtype": dtype, "trust_remote_code": trust_remote_code}
        if trust_remote_code and hasattr(config, "auto_map"):
            options["code_revision"] = own_revision(checkpoint, config.auto_map)
        build = lambda: transformers.AutoModel.from_config(config, **options)  # noqa: E731
    else:
        build = lambda: chosen._from_config(part_for(chosen, config), dtype=dtype)  # noqa: E731
    name = chosen.__name__ if chosen is not None else type(config).__name__
    return _first_that_builds(checkpoint, name, build)


def _first_that_builds(
    checkpoint: Checkpoint, name: str, build: Callable[[], nn.Module]
) -> nn.Module:
    """Build with real buffers, else wholly on `meta`: some code mixes the two while building."""
    try:
        try:
            return _built(_MetaWeights(), build)
        except _MIXING:
            return _built(torch.device("meta"), build)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise NormscopeError(
            FailureKind.OUT_OF_MEMORY, f"{checkpoint.target}: {name} does not fit in memory"
        ) from error
    except Exception as error:
        raise refused(checkpoint, name, error) from error


_MIXING = (RuntimeError, NotImplementedError, TypeError, ValueError)
"""What an operation raises that is given a real value and one on `meta`."""


def _built(placing: AbstractContextManager[Any], build: Callable[[], nn.Module]) -> nn.Module:
    with placing, _no_init_weights():
        module = build()
    if isinstance(module, transformers.PreTrainedModel):
        module.tie_weights()  # a part of the initialization that was skipped
    move_parameters_to_meta(module)
    return module.eval()


class _MetaWeights(TorchFunctionMode):
    """Puts uninitialized and large new tensors on `meta`, and computes small ones for real.

    Code reads what it computes while it builds (drop-path rates, window indices), and buffers that
    hold content (positions, frequencies) keep their forward from asking for assumptions.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            device = "meta" if func in _UNINITIALIZED or _is_large(func, args, kwargs) else "cpu"
            kwargs = {**kwargs, "device": device}
        return func(*args, **kwargs)


_UNINITIALIZED = frozenset({torch.empty, torch.empty_strided, torch.empty_permuted})


def _is_large(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Ask the shape of `meta`, which costs nothing."""
    if func in {torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor}:
        return False
    shape = func(*args, **{**kwargs, "device": "meta"})
    return isinstance(shape, torch.Tensor) and shape.numel() > LARGEST_REAL


def move_parameters_to_meta(module: nn.Module) -> None:
    """Replace the parameters that were made real, keeping those that are tied tied."""
    moved: dict[int, nn.Parameter] = {}
    for owner in module.modules():
        for name, value in owner._parameters.items():
            if value is None or value.is_meta:
                continue
            if id(value) not in moved:
                moved[id(value)] = nn.Parameter(value.to("meta"), requires_grad=value.requires_grad)
            owner._parameters[name] = moved[id(value)]


@contextmanager
def _no_init_weights() -> Iterator[None]:
    """Skip initialization: nothing looks at the values of weights."""
    found: Callable[[], AbstractContextManager[Any]] | None = None
    for place in ("transformers.initialization", "transformers.modeling_utils"):  # 5.x, 4.x
        with suppress(ModuleNotFoundError):
            found = found or getattr(importlib.import_module(place), "no_init_weights", None)
    with nullcontext() if found is None else found():
        yield
