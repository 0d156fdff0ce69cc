"""Counts what a model is built of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn.modules import module as registration

from normscope.limits import Limits, OverLimit


@contextmanager
def counted_modules(limits: Limits) -> Iterator[None]:
    """Raise `OverLimit` in the block once it has put together more modules than the limit."""
    count = 0

    def count_one(_owner: nn.Module, _name: str, _value: Any) -> None:
        nonlocal count
        count += 1
        if count > limits.modules:
            raise OverLimit(
                f"its config builds more than {limits.modules:,} modules",
                "let it have more: --max-modules N",
            )

    handle = registration.register_module_module_registration_hook(count_one)
    try:
        yield
    finally:
        handle.remove()
