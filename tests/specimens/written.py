"""Small modules whose forward a test writes."""

from collections.abc import Callable

import torch
from torch import nn

from normscope import inspect_module
from normscope.inspection import Inspection

WIDTH = 16
Forward = Callable[..., torch.Tensor]


class Written(nn.Module):
    """Parts, a parameter `w` of [4, WIDTH], and a forward over them: `forward(model, x)`."""

    def __init__(self, forward: Forward, **parts: nn.Module) -> None:
        super().__init__()
        self.written = forward
        for name, part in parts.items():
            setattr(self, name, part)
        self.w = nn.Parameter(torch.rand(4, WIDTH))

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        return self.written(self, *values)


def report_of(forward: Forward, *inputs: torch.Tensor, **parts: nn.Module) -> Inspection:
    """Inspect one module; its input is [2, 6, WIDTH] unless given."""
    torch.manual_seed(0)
    model = Written(forward, **parts).eval()
    return inspect_module(model, inputs or (torch.randn(2, 6, WIDTH),))


def stacked(
    forward: Forward, parts: Callable[[], dict[str, nn.Module]], *inputs: torch.Tensor
) -> Inspection:
    """Inspect two blocks in a row, each of parts of its own."""
    torch.manual_seed(0)
    blocks = nn.Sequential(*(Written(forward, **parts()) for _ in range(2)))
    return inspect_module(blocks.eval(), inputs or (torch.randn(2, 6, WIDTH),))
