"""Facts of norms that a program of mutation testing found no other test of."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_module
from normscope.inspection import NormReport
from specimens.written import WIDTH, Written, report_of

LAST = {"dim": -1, "keepdim": True}


def square(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2).mean(**LAST)


def size(x: torch.Tensor) -> torch.Tensor:
    return square(x) + 1e-6


def centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(**LAST)


NO_NORMS = {
    "multiplied by its variance": lambda m, x: x * x.var(**LAST),
    "multiplied by its size": lambda m, x: x * size(x).sqrt(),
    "divided by one over its size": lambda m, x: x / size(x).rsqrt(),
    "divided by its mean square": lambda m, x: x / size(x),
    "multiplied by one over its mean square": lambda m, x: x * size(x).reciprocal(),
    "another value's size": lambda m, x: m.a(x) * size(x).rsqrt(),
    "a product of two values": lambda m, x: x * (x * m.a(x)).mean(**LAST).rsqrt(),
    "a mean of cubes": lambda m, x: x * x.pow(3).mean(**LAST).rsqrt(),
    "a mean of no squares": lambda m, x: x * x.mean(**LAST).rsqrt(),
    "a centred value by its size before": lambda m, x: centred(x) * size(x).rsqrt(),
    "a value by its size after centring": lambda m, x: x * size(centred(x)).rsqrt(),
    "a value by its deviation": lambda m, x: x / x.std(**LAST),
    "less twice its mean": lambda m, x: (
        torch.sub(x, x.mean(**LAST), alpha=2) * size(torch.sub(x, x.mean(**LAST))).rsqrt()
    ),
}


@pytest.mark.parametrize("forward", NO_NORMS.values(), ids=NO_NORMS)
def test_a_value_that_is_scaled_otherwise_than_by_its_own_size_is_no_norm(forward) -> None:
    def added(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x + model.b(torch.relu(forward(model, model.a(x))))

    parts = {name: nn.Linear(WIDTH, WIDTH) for name in "ab"}
    assert report_of(added, **parts).norms == ()


def normed(norm, *inputs: torch.Tensor, **parts: nn.Module) -> NormReport:
    """Return the only norm of x + a branch behind `norm(model, x)`."""

    def added(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x + model.b(torch.relu(model.a(norm(model, x))))

    products = {name: nn.Linear(WIDTH, WIDTH) for name in "ab"}
    (found,) = report_of(added, *inputs, **products, **parts).norms
    return found


class Stored(nn.Module):
    """Parameters and buffers that the test's forward makes a norm of."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.bias = (nn.Parameter(torch.rand(WIDTH)) for _ in range(2))
        self.register_buffer("eps", torch.tensor(1e-6))
        self.register_buffer("mean", torch.rand(WIDTH))
        self.register_buffer("var", torch.rand(WIDTH))


NORMS = {
    "eps in a tensor": (lambda m, x: x * (square(x) + torch.tensor(1e-6)).rsqrt(), None),
    "eps in a buffer": (lambda m, x: x * (square(x) + m.s.eps).rsqrt(), None),
    "eps in a buffer of one": (lambda m, x: x * (square(x) + m.s.eps[None]).rsqrt(), None),
    "the square of its absolute": (lambda m, x: x * (square(x.abs()) + 1e-6).rsqrt(), 1e-6),
    "a power": (lambda m, x: x * (square(x) + 1e-6) ** -0.5, 1e-6),
    "less its negated mean": (
        lambda m, x: (x + -x.mean(**LAST)) * (square(x + -x.mean(**LAST)) + 1e-6).rsqrt(),
        1e-6,
    ),
    "a sum over the count for the mean": (
        lambda m, x: (x - x.sum(**LAST) / 16) / (x.var(**LAST, correction=0) + 1e-6).sqrt(),
        1e-6,
    ),
}


@pytest.mark.parametrize(("forward", "eps"), NORMS.values(), ids=NORMS)
def test_a_value_that_is_divided_by_its_own_size_is_a_norm(forward, eps) -> None:
    norm = normed(forward, s=Stored())
    assert norm.kind in {"RMSNorm", "LayerNorm"}
    assert (norm.eps, norm.axes, norm.shape, norm.groups) == (eps, (-1,), (WIDTH,), None)


def centred_over(axes: tuple[int, ...], x: torch.Tensor) -> torch.Tensor:
    mean, variance = x.mean(axes, True), x.var(axes, keepdim=True, correction=0)
    return (x - mean) * (variance + 1e-5).rsqrt()


AXES = {
    (-1,): ("LayerNorm", (-1,), (7,)),
    (1,): ("LayerNorm", (-3,), (5,)),
    (1, 2, 3): ("LayerNorm", (-3, -2, -1), (5, 6, 7)),
    (2, 3): ("InstanceNorm", (-2, -1), (6, 7)),
    (0, 2, 3): ("BatchNorm", (-4, -2, -1), (4, 6, 7)),
}


@pytest.mark.parametrize("axes", AXES)
def test_the_axes_of_the_statistics_name_a_centred_norm(axes: tuple[int, ...]) -> None:
    parts = {"a": nn.Conv2d(5, 5, 1), "b": nn.Conv2d(5, 5, 1)}
    (norm,) = report_of(
        lambda m, x: x + m.b(torch.relu(m.a(centred_over(axes, x)))),
        torch.rand(4, 5, 6, 7),
        **parts,
    ).norms
    assert (norm.kind, norm.axes, norm.shape) == AXES[axes]


def test_statistics_of_all_elements_are_over_every_axis() -> None:
    norm = normed(lambda m, x: x * (x.pow(2).mean() + 1e-6).rsqrt())
    assert (norm.kind, norm.axes, norm.shape) == ("RMSNorm", (-3, -2, -1), (2, 6, WIDTH))


FUSED = {
    "group": (nn.GroupNorm(3, 9), ("GroupNorm", (1, 2, 3), (9,), 3)),
    "batch": (nn.BatchNorm2d(9), ("BatchNorm", (0, 2, 3), (9,), None)),
    "instance": (nn.InstanceNorm2d(9), ("InstanceNorm", (2, 3), (9,), None)),
    "layer": (nn.LayerNorm((6, 7)), ("LayerNorm", (-2, -1), (6, 7), None)),
}


@pytest.mark.parametrize("name", FUSED)
def test_the_axes_of_torchs_own_norms(name: str) -> None:
    module, facts = FUSED[name]
    parts = {"a": nn.Conv2d(9, 9, 1), "b": nn.Conv2d(9, 9, 1)}
    (norm,) = report_of(
        lambda m, x: x + m.b(torch.relu(m.a(m.n(x)))), torch.rand(4, 9, 6, 7), n=module, **parts
    ).norms
    assert (norm.kind, norm.axes, norm.shape, norm.groups) == facts


def test_a_batch_norm_of_a_reshaped_grid_is_no_instance_norm() -> None:
    parts = {"n": nn.BatchNorm2d(9), "a": nn.Conv2d(9, 9, 1)}
    (norm,) = report_of(
        lambda m, x: m.a(m.n(x.reshape(4, 9, 7, 6))), torch.rand(4, 9, 6, 7), **parts
    ).norms
    assert (norm.kind, norm.axes, norm.shape) == ("BatchNorm", (0, 2, 3), (9,))


def test_norms_that_one_forward_writes_are_numbered() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for part in (m.a, m.b, m.a):
            x = x + part(functional.rms_norm(x, (WIDTH,), eps=1e-6))
        return x

    parts = {name: nn.Linear(WIDTH, WIDTH) for name in "ab"}
    names = [norm.name for norm in report_of(forward, **parts).norms]
    assert names == [":RMSNorm", ":RMSNorm.1", ":RMSNorm.2"]


SIZES = {
    "RMSNorm": {
        "a sum over the count": lambda x: (x.pow(2).sum(**LAST) / 16 + 1e-6).rsqrt(),
        "a sum times one over the count": lambda x: (x.pow(2).sum(**LAST) * 0.0625 + 1e-6).rsqrt(),
        "a length over the root of the count": lambda x: 1 / (torch.norm(x, **LAST) / 4),
        "one over a length, times the root": lambda x: torch.norm(x, **LAST).reciprocal() * 4,
        "a length over the root, at least eps": lambda x: (
            (torch.norm(x, **LAST) * 16**-0.5).clamp(min=1e-6).reciprocal()
        ),
    },
    "L2Norm": {
        "a sum": lambda x: (x.pow(2).sum(**LAST) + 1e-6).rsqrt(),
        "a sum over another number": lambda x: (x.pow(2).sum(**LAST) / 4 + 1e-6).rsqrt(),
        "a length over the count": lambda x: 1 / (torch.norm(x, **LAST) / 16),
        "a length times the root of the count": lambda x: 1 / (torch.norm(x, **LAST) * 4),
    },
}


@pytest.mark.parametrize("kind", SIZES)
def test_a_sum_of_squares_is_a_mean_where_it_is_divided_by_their_count(kind: str) -> None:
    found = {name: normed(lambda m, x, s=size: x * s(x)).kind for name, size in SIZES[kind].items()}
    assert found == dict.fromkeys(SIZES[kind], kind)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_rms_norm_that_is_given_no_eps_has_the_one_that_torch_computes_with(dtype, device):
    model = Written(lambda m, x: x + m.a(functional.rms_norm(x, (WIDTH,))), a=nn.Linear(16, 16))
    x = torch.full((2, 6, WIDTH), 1e-4, dtype=dtype)
    (norm,) = inspect_module(model.to(device, dtype), x.to(device)).norms
    square = x.double() ** 2
    scaled = functional.rms_norm(x, (WIDTH,)).double() ** 2
    assert norm.eps == pytest.approx((square / scaled - square).mean().item(), rel=0.05)


def test_a_gain_that_is_scaled_before_it_is_multiplied_is_no_plain_gain() -> None:
    half = torch.tensor(0.5)
    plain = nn.RMSNorm(WIDTH, elementwise_affine=False)
    norm = normed(lambda m, x: m.n(x) * (m.s.gain * half), n=plain, s=Stored())
    assert (norm.gain, norm.weight) == ("other", "s.gain")


def test_a_scale_behind_a_norm_with_a_gain_is_no_gain_of_the_norm() -> None:
    norm = normed(lambda m, x: m.n(x) * m.s.gain, n=nn.RMSNorm(WIDTH), s=Stored())
    assert (norm.gain, norm.weight) == ("w", "n.weight")


def test_positions_behind_a_norm_without_a_gain_are_no_bias_of_the_norm() -> None:
    norm = normed(lambda m, x: m.n(x) + m.w[0], n=nn.LayerNorm(WIDTH, elementwise_affine=False))
    assert (norm.gain, norm.bias, norm.bias_name) == ("none", False, None)


def test_a_gain_and_a_bias_that_are_written_behind_a_norm_are_the_norms() -> None:
    plain = nn.LayerNorm(WIDTH, elementwise_affine=False)
    norm = normed(lambda m, x: m.n(x) * m.s.gain + m.s.bias, n=plain, s=Stored())
    assert (norm.gain, norm.weight) == ("w", "s.gain")
    assert (norm.bias, norm.bias_name) == (True, "s.bias")


def frozen(m: nn.Module, x: torch.Tensor, power: float = -0.5) -> torch.Tensor:
    scale = m.s.gain * (m.s.var + 1e-3) ** power
    return x * scale + (m.s.bias - m.s.mean * scale)


def test_a_batch_norm_by_stored_statistics_that_is_written_out_is_told() -> None:
    norm = normed(frozen, torch.randn(3, WIDTH), s=Stored())
    assert (norm.kind, norm.axes, norm.shape, norm.eps) == ("BatchNorm", (0,), (WIDTH,), 1e-3)
    assert (norm.gain, norm.weight, norm.bias) == ("w", "s.gain", True)
    assert (norm.bias_name, norm.readers) == ("s.bias", ("a",))


def test_a_stored_factor_without_a_root_is_no_batch_norm() -> None:
    def added(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x + m.a(frozen(m, x, power=2.0))

    assert report_of(added, a=nn.Linear(WIDTH, WIDTH), s=Stored()).norms == ()


@pytest.mark.parametrize("half", [False, True])
def test_squares_of_half_precision_that_are_summed_in_single_are_told(half: bool) -> None:
    def norm(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        squares = x.pow(2).float() if half else x.float().pow(2)
        return (x * (squares.mean(**LAST) + 1e-6).rsqrt()).to(x.dtype)

    model = Written(lambda m, x: x + m.a(norm(m, x)), a=nn.Linear(WIDTH, WIDTH))
    (found,) = inspect_module(
        model.to(torch.bfloat16), torch.ones(2, 6, WIDTH, dtype=torch.bfloat16)
    ).norms
    assert (found.squares_in_half, found.statistics_dtype) == (half, "float32")


@pytest.mark.parametrize("groups", [2, 4])
def test_features_that_are_split_for_the_statistics_are_groups(groups: int) -> None:
    def norm(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        parts = x.unflatten(-1, (groups, WIDTH // groups))
        scale = (parts.pow(2).mean(**LAST) + 1e-6).rsqrt()
        return x * scale.expand_as(parts).flatten(-2)

    found = normed(norm)
    assert (found.kind, found.groups) == ("RMSNorm", groups)
    assert (found.shape, found.axes) == ((WIDTH // groups,), (-1,))
