"""What a report says of a model that runs: a norm is judged by what it reads, not where it lies."""

import torch
from torch import nn

from normscope import inspect_module
from normscope.render.remarks import remarks_on
from specimens.build import build
from specimens.spec import Spec

MISSING = "no final norm: nothing normalizes the stream after a.z"


class Beside(nn.Module):
    """A stack without a final norm, and beside it a norm of the stack's end or of its beginning."""

    def __init__(self, *, reads_end: bool) -> None:
        super().__init__()
        self.a, _ = build(Spec(final_norm=False))
        self.norm = nn.LayerNorm(16)
        self.reads_end = reads_end

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        end = self.a(x)
        return end @ self.norm(end if self.reads_end else x).transpose(1, 2)


def test_a_norm_beside_the_stack_ends_it_only_if_it_reads_its_end() -> None:
    x = torch.randn(2, 6, 16)
    assert MISSING in remarks_on(inspect_module(Beside(reads_end=False).eval(), x))
    assert MISSING not in remarks_on(inspect_module(Beside(reads_end=True).eval(), x))
