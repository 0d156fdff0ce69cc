"""Values that are put together from pieces: a norm at the end is one where all come from norms."""

import torch
from torch import nn

from normscope import inspect_module

WIDTH = 16


class Stretched(nn.Module):
    """x + up(N(f(x'))): every token but the first stands twice in the sum (Funnel)."""

    def __init__(self, *, norms: int, bare: bool) -> None:
        super().__init__()
        self.bare = bare
        self.f = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))
        self.n = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(norms))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.f(torch.cat([x[:, :1], x[:, 1::2]], dim=1))
        normed = [norm(y) for norm in self.n] or [y]
        rest = torch.repeat_interleave(normed[-1][:, 1:], 2, dim=1)
        first = y if self.bare else normed[0]
        return x + torch.cat([first[:, :1], rest[:, : x.shape[1] - 1]], dim=1)


def formulas(*, norms: int, bare: bool = False) -> list[tuple[str, str]]:
    model = nn.Sequential(*(Stretched(norms=norms, bare=bare) for _ in range(2))).eval()
    report = inspect_module(model, (torch.randn(2, 9, WIDTH),))
    return [(part.placement.value, part.formula) for b in report.blocks for part in b.branches]


def test_pieces_of_one_norms_output_are_its_output() -> None:
    assert formulas(norms=1) == [("res-post-norm", "x + N(f(x))")] * 2


def test_pieces_of_two_norms_outputs_are_normalized_as_well() -> None:
    assert formulas(norms=2) == [("res-post-norm", "x + N(f(x))")] * 2


def test_a_piece_that_no_norm_gave_is_seen() -> None:
    assert formulas(norms=1, bare=True) == [("other", "x + f(x)")] * 2
    assert formulas(norms=0) == [("no-norm", "x + f(x)")] * 2
