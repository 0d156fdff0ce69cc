"""A module in eval mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module and all below it into eval mode; each one's own mode is restored at the end."""
    training = [child for child in module.modules() if child.training]
    try:
        module.eval()
        yield
    finally:
        for child in training:
            child.training = True
