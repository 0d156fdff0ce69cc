"""What is assumed in place of data is listed, and where."""

import torch
from torch import nn

from normscope import inspect_module
from normscope.inspection import Inspection

WIDTH = 8


class Keeping(nn.Module):
    """Writes what it computed into a value that no weight reaches."""

    def __init__(self, *, beyond: bool) -> None:
        super().__init__()
        self.n, self.l, self.beyond = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), beyond

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = torch.zeros(x.shape)
        y = self.l(self.n(x))
        if self.beyond:
            # No row of an empty value has an index, whatever it is.
            torch.zeros(0, WIDTH).index_copy_(0, y[0, :, 0].long(), y[0])
        kept.copy_(y)
        return x + kept


def inspected(*, meta: bool, beyond: bool = False) -> Inspection:
    with torch.device("meta" if meta else "cpu"):
        model = nn.Sequential(Keeping(beyond=beyond), Keeping(beyond=beyond))
    return inspect_module(model.eval(), (torch.randn(2, 4, WIDTH),))


def test_zeros_written_into_data_are_an_assumption() -> None:
    report = inspected(meta=True)
    assert [(one.question, one.where, one.answer) for one in report.assumptions] == [
        ("copy into data", "0", "zeros"),
        ("copy into data", "1", "zeros"),
    ]
    assert [part.formula for b in report.blocks for part in b.branches] == ["x + f(N(x))"] * 2


def test_what_could_not_be_written_is_one_too() -> None:
    found = {(one.question, one.answer) for one in inspected(meta=True, beyond=True).assumptions}
    assert ("index_copy into data", "left as it was") in found


def test_a_model_with_weights_needs_none() -> None:
    assert inspected(meta=False).assumptions == ()
