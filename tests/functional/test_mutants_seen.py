"""Cases that a program of mutation testing found no other test of."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_module
from normscope.inspection import Inspection


def report_of(forward, **parts: nn.Module) -> Inspection:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)
            self.w = nn.Parameter(torch.rand(4, 16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(self, x)

    torch.manual_seed(0)
    return inspect_module(Model().eval(), torch.randn(2, 6, 16))


@pytest.mark.parametrize("order", [1, 3, float("inf")])
def test_a_quotient_by_another_norm_of_vectors_is_no_norm(order: float) -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x / torch.linalg.vector_norm(x, ord=order, dim=-1, keepdim=True)

    assert report_of(forward).norms == ()


def test_a_quotient_by_the_euclidean_one_is() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)

    (norm,) = report_of(forward).norms
    assert norm.kind == "L2Norm"


class Gated(nn.Module):
    """A norm that holds its gain, and a gate behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.rand(16))
        self.g = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.w * scaled * functional.silu(self.g(x))


def test_a_module_with_a_norm_and_a_gate_lends_its_name() -> None:
    (norm,) = report_of(lambda model, x: model.a(x), a=Gated()).norms
    assert (norm.name, norm.weight) == ("a", "a.w")


def test_a_norm_of_activations_that_others_are_multiplied_by_is_a_norm() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        keys = functional.rms_norm(model.a(x[0]), (16,), eps=1e-6)
        return torch.mm(model.a(x[1])[:, :6], keys)

    (norm,) = report_of(forward, a=nn.Linear(16, 16)).norms
    assert norm.kind == "RMSNorm"


def test_a_norm_of_a_learned_query_that_the_input_is_added_to_is_a_norm() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        query = functional.rms_norm(model.w, (16,), eps=1e-6)
        return functional.linear(x, query + x[0, :1])

    assert [norm.kind for norm in report_of(forward).norms] == ["RMSNorm"]


@pytest.mark.parametrize("swapped", [False, True])
def test_halves_that_are_added_to_each_other_are_no_residual_branch(swapped: bool) -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        first, second = x[..., :8], x[..., 8:]
        if swapped:
            first, second = second, first
        return first + model.b(torch.relu(model.a(second)))

    report = report_of(forward, a=nn.Linear(8, 8), b=nn.Linear(8, 8))
    assert report.blocks == ()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_branch_that_is_multiplied_by_a_weight_shows_its_scale(reverse: bool) -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        branch = model.b(torch.relu(model.a(model.n(x))))
        return x + (branch * model.w[0] if reverse else model.w[0] * branch)

    parts = {name: nn.Linear(16, 16) for name in "ab"}
    (block,) = report_of(forward, n=nn.LayerNorm(16), **parts).blocks
    assert [branch.formula for branch in block.branches] == ["x + γ·f(N(x))"]


def test_a_sum_with_a_factor_of_the_branch_shows_it() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.add(x, model.b(torch.relu(model.a(model.n(x)))), alpha=0.5)

    parts = {name: nn.Linear(16, 16) for name in "ab"}
    (block,) = report_of(forward, n=nn.LayerNorm(16), **parts).blocks
    assert [branch.formula for branch in block.branches] == ["x + 0.5·f(N(x))"]
