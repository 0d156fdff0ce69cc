"""What lies before an edit is not computed again, unless it was written into or drawn at random."""

import pytest
import torch
from torch import nn

from normscope.inputs import ExampleInputs
from normscope.tracing import trace_module
from normscope.verification.rerun import Edit, Subject, rerun

X = torch.tensor([[1.0, 2.0, 4.0]])


def subject(module: nn.Module) -> Subject:
    graph = trace_module(module.eval(), {}, (X,))
    return Subject(module=module, inputs=ExampleInputs(positional=(X,)), graph=graph)


def node(run: Subject, operation: str) -> int:
    return next(one.index for one in run.graph.nodes if one.operation == operation)


class Chain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = torch.arange(3) * torch.full_like(x, 1.0)
        return (x.square().exp() + there).tanh().neg()


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.square()
        first = y.exp()
        y[:, :2].mul_(2.0)
        return (first + y).neg()


class Drawn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x) + (x.exp() + torch.randn_like(x)).neg()


def test_results_before_the_edit_are_taken_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    run = subject(Chain())
    last, middle = node(run, "neg"), node(run, "tanh")
    plain = rerun(run, Edit(watched=(last,)), keep=True)[last]
    assert {node(run, "pow"), node(run, "exp"), node(run, "add")} <= set(run.kept)
    run.kept[node(run, "add")] = torch.zeros(1, 3)  # whoever computes it again does not see this
    seen = rerun(run, Edit(outputs={middle: lambda y: y + 1.0}, watched=(last,)))[last]
    assert torch.equal(seen, -torch.ones(1, 3).double())
    early = rerun(run, Edit(outputs={node(run, "pow"): torch.zeros_like}, watched=(last,)))[last]
    assert torch.equal(early, -(1.0 + torch.arange(3.0)).tanh()[None].double())
    assert not torch.equal(plain, seen)


@pytest.mark.parametrize("module", [Chain(), Written(), Drawn()])
def test_kept_results_change_no_answer(module: nn.Module) -> None:
    run, other = subject(module), subject(module)
    last = node(run, "neg")
    edit = Edit(outputs={last: lambda y: 3 * y}, watched=(last, *run.graph.outputs))
    rerun(run, Edit(watched=run.graph.outputs), keep=True)
    assert run.kept
    for _ in range(2):
        kept, computed = rerun(run, edit), rerun(other, edit)
        assert all(torch.equal(kept[item], computed[item]) for item in edit.watched)


def test_what_was_written_into_later_is_not_kept() -> None:
    run = subject(Written())
    rerun(run, Edit(watched=run.graph.outputs), keep=True)
    assert node(run, "pow") not in run.kept
    assert node(run, "exp") in run.kept
