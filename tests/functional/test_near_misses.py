"""What looks like a norm or a residual add and is none."""

import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_module


def report_of(forward, **parts: nn.Module):
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return forward(self, x)

    torch.manual_seed(0)
    return inspect_module(Model().eval(), torch.randn(2, 6, 16))


def test_softmax_and_attention_scaling_are_no_norms() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        q, k, v = model.a(x), model.b(x), model.c(x)
        scores = q @ k.transpose(-1, -2) / 4.0
        shifted = torch.exp(scores - scores.amax(-1, keepdim=True))
        return (shifted / shifted.sum(-1, keepdim=True)) @ v

    linears = {name: nn.Linear(16, 16) for name in "abc"}
    report = report_of(forward, **linears)
    assert report.norms == ()
    assert report.blocks == ()


def test_a_standardized_weight_is_no_norm() -> None:
    class Standardized(nn.Conv1d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = functional.batch_norm(
                self.weight.reshape(1, self.out_channels, -1), None, None, training=True
            ).reshape_as(self.weight)
            return functional.conv1d(x, weight, self.bias, padding=1)

    report = report_of(
        lambda model, x: model.c(x.transpose(1, 2)), c=Standardized(16, 16, 3, padding=1)
    )
    assert report.norms == ()


def test_a_written_out_standardized_weight_is_no_norm() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        weight = model.a.weight
        centred = weight - weight.mean(1, keepdim=True)
        return functional.linear(x, centred * torch.rsqrt(centred.pow(2).mean(1, keepdim=True)))

    assert report_of(forward, a=nn.Linear(16, 16)).norms == ()


def test_rotary_position_is_no_residual_add() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        q = model.a(x)
        angle = torch.arange(6.0)[:, None] * torch.ones(16)
        rotated = torch.cat((-q[..., 8:], q[..., :8]), dim=-1)
        return q * angle.cos() + rotated * angle.sin()

    assert report_of(forward, a=nn.Linear(16, 16)).blocks == ()


def test_position_bias_doubling_and_snake_are_no_residual_adds() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = model.a(x) + model.p.weight
        x = x + x
        return x + torch.sin(x) ** 2

    assert report_of(forward, a=nn.Linear(16, 16), p=nn.Embedding(6, 16)).blocks == ()


def test_two_projections_of_one_value_are_no_residual_add() -> None:
    report = report_of(
        lambda model, x: model.a(x) + model.b(x), a=nn.Linear(16, 16), b=nn.Linear(16, 16)
    )
    assert report.blocks == ()


def test_pooling_minus_identity_is_a_branch_and_not_a_second_add() -> None:
    class PoolBlock(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = nn.GroupNorm(1, 6)
            self.p = nn.AvgPool1d(3, stride=1, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.n(x)
            return x + (self.p(y) - y)

    torch.manual_seed(0)
    report = inspect_module(nn.Sequential(PoolBlock(), PoolBlock()).eval(), torch.randn(2, 6, 16))
    assert [(b.kind.value, b.placement.value) for k in report.blocks for b in k.branches] == [
        ("pooling", "pre-norm")
    ] * 2


def test_a_skip_inside_a_mixer_does_not_touch_the_stream() -> None:
    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n, self.i, self.o = nn.RMSNorm(16), nn.Linear(16, 16), nn.Linear(16, 16)
            self.m = nn.Linear(16, 16)
            self.d = nn.Parameter(torch.rand(16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.i(self.n(x))
            return x + self.o(self.m(h) + self.d * h)

    torch.manual_seed(0)
    report = inspect_module(nn.Sequential(Mixer(), Mixer()).eval(), torch.randn(2, 6, 16))
    assert [len(block.branches) for block in report.blocks] == [1, 1]
    assert report.placement.value == "pre-norm"


def test_a_clip_of_long_vectors_is_no_norm() -> None:
    def clipped(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = model.a(x)
        size = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
        return y * (4.0 / (size + 1e-6)).clamp(max=1.0)

    assert report_of(clipped, a=nn.Linear(16, 16)).norms == ()
