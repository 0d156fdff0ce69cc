"""Facts of single norms: the order of casts around the gain, and what folding a gain takes."""

import pytest
import torch
from torch import nn

from normscope import inspect_module
from normscope.inspection import NormReport

WIDTH = 16


class Norm(nn.Module):
    """An RMS norm that casts back before its gain, after it, or never."""

    def __init__(self, order: str, width: int = WIDTH) -> None:
        super().__init__()
        self.order = order
        self.a = nn.Parameter(torch.rand(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x if self.order == "no cast" else x.to(torch.float32)
        y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.order == "after gain":
            return (y * (1.0 + self.a.float())).type_as(x)
        return self.a * y.to(x.dtype)


class Model(nn.Module):
    """x + o(forward of the norm's output), in which the test writes what reads the norm."""

    def __init__(self, reads, norm: nn.Module | None = None, **parts: nn.Module) -> None:
        super().__init__()
        self.reads = reads
        self.n = norm or nn.RMSNorm(WIDTH)
        self.a, self.b, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.o(torch.relu(self.reads(self, self.n(x))))


def norm_of(model: nn.Module, name: str = "n", dtype: torch.dtype = torch.float32) -> NormReport:
    report = inspect_module(model.to(dtype).eval(), torch.randn(2, 6, WIDTH, dtype=dtype))
    return next(norm for norm in report.norms if norm.name == name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("order", ["before gain", "after gain", "no cast"])
def test_the_order_of_casts_around_the_gain(order: str, dtype: torch.dtype) -> None:
    assert norm_of(Model(lambda m, y: m.a(y), Norm(order)), dtype=dtype).cast == order


def test_a_fused_norm_casts_after_its_gain() -> None:
    norm = norm_of(Model(lambda m, y: m.a(y), nn.LayerNorm(WIDTH)), dtype=torch.bfloat16)
    assert (norm.cast, norm.statistics_dtype, norm.gain_dtype) == (
        "after gain",
        "float32",
        "float32",
    )


def test_a_norm_without_a_gain_has_no_order_of_casts() -> None:
    assert (
        norm_of(Model(lambda m, y: m.a(y), nn.RMSNorm(WIDTH, elementwise_affine=False))).cast
        is None
    )


def test_a_gain_is_foldable_into_all_linears_that_read_it() -> None:
    norm = norm_of(Model(lambda m, y: m.a(y) * m.b(y)))
    assert (norm.foldable, norm.foldable_reason, norm.readers) == (True, None, ("a", "b"))


def test_a_gain_that_a_clamp_or_a_position_reads_is_not() -> None:
    for reads in (
        lambda m, y: m.a(y.clamp(-3.0, 3.0)),
        lambda m, y: m.a(y + m.b.weight[:6]),
        lambda m, y: m.a(torch.tanh(y)),
    ):
        assert norm_of(Model(reads)).foldable_reason == "a reader is not linear"


def test_a_linear_over_the_tokens_does_not_take_the_gain() -> None:
    model = Model(lambda m, y: m.t(y.transpose(1, 2)).transpose(1, 2), t=nn.Linear(6, 6))
    assert norm_of(model).foldable_reason == "a reader sums over another axis"


def test_a_weight_with_another_use_does_not_take_the_gain() -> None:
    model = Model(lambda m, y: m.a(y) + m.a(torch.sigmoid(y)))
    assert norm_of(model).foldable_reason == "a reader is not linear"
    model = Model(lambda m, y: m.a(torch.relu(m.a(y))))
    assert norm_of(model).foldable_reason == "a reader's weight has other uses"


def test_rows_of_the_weights_of_chosen_experts_take_the_gain() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.r, self.w = nn.Linear(WIDTH, 4), nn.Parameter(torch.rand(4, WIDTH, WIDTH))

        def forward(self, y: torch.Tensor) -> torch.Tensor:
            rows = y.reshape(-1, WIDTH)
            chosen = self.r(rows).argmax(-1)
            return (rows.unsqueeze(1) @ self.w[chosen]).reshape(y.shape)

    norm = norm_of(Model(lambda m, y: m.e(y), e=Experts()))
    assert (norm.foldable, norm.readers) == (True, ("e.r", "e"))


def test_a_gain_of_two_calls_is_folded_for_both_or_for_none() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n, self.a, self.b = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.a(self.n(x))
            return self.b(torch.tanh(self.n(x)))

    report = inspect_module(Twice().eval(), torch.randn(2, 6, WIDTH))
    assert [norm.foldable for norm in report.norms] == [False, False]
    assert report.norms[0].foldable_reason == "another call of it cannot be folded"


class GainBehind(nn.Module):
    """A fused norm without a gain, and arithmetic behind it."""

    def __init__(self, fused: str, shape: tuple[int, ...], bias: bool, plus_one: bool) -> None:
        super().__init__()
        self.run = getattr(nn.functional, fused)
        self.w = nn.Parameter(torch.rand(shape))
        self.b = nn.Parameter(torch.rand(shape)) if bias else None
        self.plus_one = plus_one

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.run(x, x.shape[-1:]) * (1 + self.w if self.plus_one else self.w)
        return y if self.b is None else y + self.b


@pytest.mark.parametrize("fused", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("plus_one", [False, True])
def test_a_gain_written_out_behind_a_fused_norm(fused: str, bias: bool, plus_one: bool) -> None:
    norm = norm_of(Model(lambda m, y: m.a(y), GainBehind(fused, (WIDTH,), bias, plus_one)))
    assert (norm.module, norm.gain, norm.weight) == ("n", "1+w" if plus_one else "w", "n.w")
    assert (norm.bias, norm.bias_name) == (bias, "n.b" if bias else None)


class PerHead(nn.Module):
    """A norm over each head with a gain of its own for every head, as Chameleon's."""

    def __init__(self) -> None:
        super().__init__()
        self.n = GainBehind("layer_norm", (4, WIDTH // 4), bias=True, plus_one=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(x.unflatten(-1, (4, -1))).flatten(-2)


def test_a_gain_of_its_own_for_every_head() -> None:
    norm = norm_of(Model(lambda m, y: m.a(y), PerHead()), "n.n")
    assert (norm.shape, norm.gain, norm.weight, norm.bias) == ((4,), "w", "n.n.w", True)


class Positions(nn.Module):
    """Learned positions that are added to a value normalized without gain: no bias of the norm."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:]) + self.p


def test_what_is_added_behind_a_norm_without_gain_is_no_bias() -> None:
    report = inspect_module(
        Model(lambda m, y: m.a(y), Positions()).eval(), torch.randn(2, 6, WIDTH)
    )
    assert [(norm.gain, norm.bias) for norm in report.norms] == [("none", False)]
