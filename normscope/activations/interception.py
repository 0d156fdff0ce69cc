"""nn.Module -> every call of it runs inside a context, until the interception is undone."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from torch import nn

Around = Callable[[tuple[Any, ...], Mapping[str, Any]], AbstractContextManager[object]]
"""Positional and keyword arguments of a call -> what it runs in."""


class Interception:
    """Stands where torch keeps the compiled form of a module's call (`nn.Module.compile`).

    Unlike a hook it goes around the whole call with the module's own hooks, is left after any
    error, KeyboardInterrupt too, and probes that are attached when it is entered see this call.
    """

    def __init__(self, module: nn.Module, around: Around) -> None:
        self._module = module
        self._around = around
        self._before = module._compiled_call_impl
        self._undone = False
        module._compiled_call_impl = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, or the interception that was there before."""
        call = self._before or self._module._call_impl
        if self._undone:
            return call(*args, **kwargs)
        with self._around(args, kwargs):
            return call(*args, **kwargs)

    def undo(self) -> None:
        """Put back what was there; one that was made later stays until it is undone itself."""
        self._undone = True
        found = self._module._compiled_call_impl
        while isinstance(found, Interception) and found._undone:
            found = found._before
        self._module._compiled_call_impl = found
