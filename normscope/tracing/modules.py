"""nn.Module -> the tree of its modules, and a record of each module's run."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import nn

from normscope.graph import Module, ModuleCall


@dataclass(slots=True)
class OpenCall:
    """A module call while it is being recorded."""

    path: str
    number: int
    parent: int | None
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    operations: int = 0


@dataclass(slots=True)
class CallStack:
    """The module calls seen so far, and those that are running now."""

    calls: list[OpenCall] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def enter(self, path: str, inputs: tuple[int, ...] = ()) -> int:
        """Begin a call of the module at `path` and return its index."""
        number = self.counts.get(path, 0)
        self.counts[path] = number + 1
        parent = self.running[-1] if self.running else None
        self.calls.append(OpenCall(path, number, parent, inputs))
        self.running.append(len(self.calls) - 1)
        return self.running[-1]

    def leave(self, outputs: tuple[int, ...] = ()) -> None:
        """End the innermost call."""
        self.calls[self.running.pop()].outputs = outputs

    def current(self) -> int:
        """Return the index of the innermost running call; the root's is always the first."""
        return self.running[-1]

    def frozen(self) -> tuple[ModuleCall, ...]:
        """Return the calls as graph values."""
        return tuple(
            ModuleCall(
                path=call.path,
                number=call.number,
                parent=call.parent,
                inputs=call.inputs,
                outputs=call.outputs,
            )
            for call in self.calls
        )


def module_tree(root: nn.Module) -> dict[str, Module]:
    """Return every module by its path, as `named_modules()` prints it."""
    paths = {id(module): path for path, module in root.named_modules()}
    return {
        path: Module(
            path=path,
            class_name=type(module).__qualname__,
            is_list=isinstance(module, nn.ModuleList | nn.Sequential),
            children=tuple(paths[id(child)] for child in module.children() if id(child) in paths),
            parameters=tuple(
                f"{path}.{name}" if path else name
                for name, _ in module.named_parameters(recurse=False)
            ),
        )
        for path, module in root.named_modules()
    }


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Return the tensors in nested tuples, lists, dicts and dataclasses, in order."""
    found: list[torch.Tensor] = []
    _gather(value, found)
    return iter(found)


_HOLD_NOTHING = frozenset({type(None), bool, int, float, str, torch.dtype, torch.device})


def _gather(value: Any, found: list[torch.Tensor]) -> None:
    if type(value) in _HOLD_NOTHING:
        return
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _gather(item, found)
    elif isinstance(value, tuple | list):
        for item in value:
            _gather(item, found)
    elif is_dataclass(value) and not isinstance(value, type):
        for entry in fields(value):
            _gather(getattr(value, entry.name, None), found)


@contextmanager
def recorded_calls(
    root: nn.Module,
    stack: CallStack,
    nodes_of: Callable[[Iterable[torch.Tensor]], tuple[int, ...]],
) -> Iterator[None]:
    """Record each run of each module under `root` into `stack` while the context is open.

    The hooks are per module and not global: only those keep torch's fused encoder path
    (`nn.TransformerEncoderLayer` in eval mode) from hiding what runs inside it.
    """
    handles = []

    def entering(path: str) -> Callable[..., None]:
        def hook(_module: nn.Module, args: Any, kwargs: Any) -> None:
            stack.enter(path, nodes_of(tensors_in((args, kwargs))))

        return hook

    def leaving(_module: nn.Module, _args: Any, output: Any) -> None:
        stack.leave(nodes_of(tensors_in(output)))

    try:
        for path, module in root.named_modules():
            if path:
                handles.append(
                    module.register_forward_pre_hook(entering(path), with_kwargs=True, prepend=True)
                )
                handles.append(module.register_forward_hook(leaving, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
