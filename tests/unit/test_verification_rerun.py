"""A second run can be changed along one path and left alone along the others."""

import pytest
import torch
from torch import nn

from normscope.errors import NormscopeError
from normscope.inputs import ExampleInputs
from normscope.tracing import trace_module
from normscope.verification.rerun import Edge, Edit, Subject, rerun

X = torch.tensor([[1.0, 2.0, 4.0]])


def subject(module: nn.Module, x: torch.Tensor = X) -> Subject:
    module = module.eval()
    graph = trace_module(module, {}, (x,))
    return Subject(module=module, inputs=ExampleInputs(positional=(x,)), graph=graph)


def node(run: Subject, operation: str, nth: int = 0) -> int:
    return [one.index for one in run.graph.nodes if one.operation == operation][nth]


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.neg() + x.square()


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.square()
        view = y[:, :2]
        y += x
        return view.neg() + y[:, 1:]


def test_one_operand_changes_and_the_other_path_does_not() -> None:
    run = subject(Doubled())
    total, square = node(run, "add"), node(run, "pow")
    edge = Edge(reader=square, position=0)
    seen = rerun(run, Edit(operands={edge: lambda x: 3 * x}, watched=(edge, square, total)))
    assert torch.equal(seen[edge], 3 * X.double())
    assert torch.equal(seen[total], 9 * X.double() ** 2 - X.double())


def test_an_output_changes_for_all_that_read_it() -> None:
    run = subject(Doubled())
    negated, total = node(run, "neg"), node(run, "add")
    seen = rerun(run, Edit(outputs={negated: torch.zeros_like}, watched=(negated, total)))
    assert not seen[negated].any()
    assert torch.equal(seen[total], X.double() ** 2)


def test_a_write_in_place_is_seen_through_its_views() -> None:
    run = subject(InPlace())
    total, last = node(run, "add"), node(run, "add", 1)
    plain = rerun(run, Edit(watched=(total, last)))
    grown = rerun(run, Edit(outputs={total: lambda y: 3 * y}, watched=(total, last)))
    assert torch.equal(grown[last], 3 * plain[last])
    written = Edge(reader=total, position=0)
    zeroed = rerun(run, Edit(operands={written: torch.zeros_like}, watched=(total, last)))
    assert torch.equal(zeroed[total], X.double())
    assert torch.equal(zeroed[last], X[:, 1:].double() - X[:, :2].double())


def test_a_batch_norm_in_eval_mode_normalizes_by_its_input() -> None:
    run = subject(nn.BatchNorm1d(3, affine=False), torch.randn(64, 3) * 5 + 2)
    (last,) = run.graph.outputs
    seen = rerun(run, Edit(watched=(last,)))[last]
    assert torch.allclose(seen.mean(0), torch.zeros(3).double(), atol=1e-5)
    assert torch.allclose(seen.var(0, unbiased=False), torch.ones(3).double(), atol=1e-3)


def test_a_batch_norm_normalizes_by_its_input_as_it_was_changed() -> None:
    run = subject(nn.BatchNorm1d(3, affine=False), torch.randn(64, 3) * 5 + 2)
    (last,) = run.graph.outputs
    into = Edge(reader=last, position=0)
    plain = rerun(run, Edit(watched=(last,)))[last]
    grown = rerun(run, Edit(operands={into: lambda x: 3 * x}, watched=(last,)))[last]
    assert torch.allclose(grown, plain, atol=1e-4)


def test_a_complex_value_keeps_both_of_its_parts() -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.fft(x).imag + 1.0

    run = subject(Turned())
    whole = node(run, "_fft_r2c")
    assert rerun(run, Edit(watched=(whole,)))[whole].imag.any()


def test_a_run_of_another_course_is_refused() -> None:
    class Fickle(nn.Module):
        runs = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.runs += 1
            return (x.neg() if self.runs == 1 else x.square()) + 1.0

    run = subject(Fickle())
    with pytest.raises(NormscopeError, match="another course"):
        rerun(run, Edit(watched=(node(run, "add"),)))
