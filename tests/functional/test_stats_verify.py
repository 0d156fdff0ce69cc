"""Outputs recomputed from inputs, and the point before the gain, for every kind of norm."""

import json
from collections.abc import Callable

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional
from typer.testing import CliRunner, Result

from normscope.activations import measure_activations
from normscope.cli.app import app
from normscope.statistics import NormStatistics, Statistics

TOLERANCE = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


class Written(nn.Module):
    """One norm as arithmetic; `value` returns it before gain and bias."""

    def __init__(self, size: int = 12) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)
        self.bias = nn.Parameter(torch.randn(size))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        raise AssertionError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * self.weight + self.bias


class EpsOutside(Written):
    def value(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / (x.std(-1, unbiased=False, keepdim=True) + 0.3)


class OnePlus(Written):
    def value(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 0.2)).to(x.dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * (1.0 + self.weight)


class Length(Written):
    def value(self, x: torch.Tensor) -> torch.Tensor:
        return functional.normalize(x, dim=-1, eps=3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * self.weight


class Scaled(Written):
    """A root of a sum made that of a mean, and then a number of its own."""

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return functional.normalize(x, dim=-1) * 12**0.5 * 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * self.weight


class Dimmed(Written):
    def value(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.3) * 0.7

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * self.weight


class ChannelsFirst(Written):
    """A layer norm over the second axis of an image."""

    def value(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(1, keepdim=True)
        return centred / torch.sqrt(centred.pow(2).mean(1, keepdim=True) + 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.value(x) * self.weight[:, None, None] + self.bias[:, None, None]


class Fused(nn.Module):
    """One of torch's own norms; `value` is what it gives without gain and bias."""

    def __init__(self, norm: nn.Module, plain: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.norm = norm
        self.value = plain
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def batch_norm() -> nn.Module:
    norm = nn.BatchNorm2d(12, eps=0.3)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    return Fused(
        norm, lambda x: functional.batch_norm(x.cpu(), mean.to(x), variance.to(x), eps=0.3)
    )


TOKENS, IMAGES = (2, 5, 12), (2, 12, 4, 3)
Case = tuple[Callable[[], nn.Module], tuple[int, ...], str]
CASES: dict[str, Case] = {
    "layer": (
        lambda: Fused(
            nn.LayerNorm(12, eps=0.3), lambda x: functional.layer_norm(x, (12,), eps=0.3)
        ),
        TOKENS,
        "LayerNorm",
    ),
    "rms": (
        lambda: Fused(nn.RMSNorm(12, eps=0.3), lambda x: functional.rms_norm(x, (12,), eps=0.3)),
        TOKENS,
        "RMSNorm",
    ),
    "1+w": (OnePlus, TOKENS, "RMSNorm"),
    "eps outside": (EpsOutside, TOKENS, "LayerNorm"),
    "length, clamped": (Length, TOKENS, "L2Norm"),
    "length, as a mean": (Scaled, TOKENS, "RMSNorm"),
    "times a number": (Dimmed, TOKENS, "RMSNorm"),
    "channels first": (ChannelsFirst, IMAGES, "LayerNorm"),
    "group": (
        lambda: Fused(nn.GroupNorm(3, 12, eps=0.3), lambda x: functional.group_norm(x, 3, eps=0.3)),
        IMAGES,
        "GroupNorm",
    ),
    "instance": (
        lambda: Fused(
            nn.InstanceNorm2d(12, eps=0.3, affine=True),
            lambda x: functional.instance_norm(x, eps=0.3),
        ),
        IMAGES,
        "InstanceNorm",
    ),
    "batch, stored": (batch_norm, IMAGES, "BatchNorm"),
}


def rows_of(kind: str, case: str, value: torch.Tensor) -> torch.Tensor:
    """Return [rows, values of a row], in the order that rows are reported in."""
    wide = value.double()
    if kind == "GroupNorm":
        return wide.unflatten(1, (3, 4)).flatten(2).flatten(0, 1)
    if kind == "InstanceNorm":
        return wide.flatten(2).flatten(0, 1)
    if kind == "BatchNorm":
        return wide.transpose(0, 1).flatten(1)
    return wide.movedim(1, -1).flatten(0, -2) if case == "channels first" else wide.flatten(0, -2)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("case", CASES)
def test_the_formula_gives_what_the_norm_gave(case: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    build, shape, kind = CASES[case]
    model = nn.Sequential(build()).to(dtype)
    (norm,) = measure_activations(model, (torch.randn(shape) * 2 + 1).to(dtype), verify=True).norms
    assert norm.kind == kind
    assert norm.error is not None
    assert 0 < norm.error < TOLERANCE[dtype]


@pytest.mark.parametrize("case", CASES)
def test_the_normalized_point_follows_from_the_input(case: str) -> None:
    torch.manual_seed(1)
    build, shape, kind = CASES[case]
    model, x = build().eval(), torch.randn(shape) * 2 + 1
    (norm,) = measure_activations(nn.Sequential(model), x).norms
    with torch.no_grad():
        expected = rows_of(kind, case, model.value(x))
    assert norm.normalized is not None
    assert norm.normalized.variance == pytest.approx(expected.var(-1, correction=0), rel=1e-5)
    assert norm.normalized.mean == pytest.approx(expected.mean(-1), rel=1e-4, abs=1e-6)
    assert not all(value == pytest.approx(1.0, rel=1e-3) for value in norm.normalized.variance)


def qwen3() -> nn.Module:
    config = transformers.Qwen3Config(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, head_dim=8,
        num_key_value_heads=2, intermediate_size=64, bos_token_id=None, eos_token_id=None,
        pad_token_id=None, rms_norm_eps=0.01,
    )  # fmt: skip
    torch.manual_seed(2)
    return transformers.Qwen3Model(config).eval()


def test_the_normalized_point_of_several_rows_a_token_is_their_mean() -> None:
    model, ids = qwen3(), torch.arange(6)[None]
    seen: list[torch.Tensor] = []
    module = model.layers[0].self_attn.q_norm
    handle = module.register_forward_pre_hook(lambda _module, args: seen.append(args[0]))
    statistics = measure_activations(model, ids, verify=True)
    handle.remove()
    norm = named(statistics, "layers.0.self_attn.q_norm")
    plain = functional.rms_norm(seen[-1].double(), (8,), eps=0.01)  # [1, tokens, heads, 8]
    assert norm.rows_per_token == 4
    assert norm.normalized is not None
    expected = plain.var(-1, correction=0).mean(-1).flatten().tolist()
    assert norm.normalized.variance == pytest.approx(expected, rel=1e-5)
    assert all(norm.error is not None and norm.error < 1e-6 for norm in statistics.norms)


def named(statistics: Statistics, name: str) -> NormStatistics:
    return next(norm for norm in statistics.norms if norm.name == name)


class Drifting(nn.Module):
    """Uses another eps in the run that is measured than in the one that was traced."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.eps, self.step = 0.01, step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.layer_norm(x, (12,), eps=self.eps)
        self.eps += self.step
        return y


@pytest.mark.parametrize(("step", "codes"), [(0.01, ["NS405"]), (0.0, [])])
def test_an_output_that_the_reported_formula_does_not_give_is_found(
    step: float, codes: list[str]
) -> None:
    torch.manual_seed(3)
    statistics = measure_activations(Drifting(step), torch.randn(2, 5, 12), verify=True)
    found = [finding.code for finding in statistics.findings if finding.code != "NS404"]
    assert found == codes
    error = statistics.norms[0].error
    assert error is not None
    assert (error > 1e-4) == bool(codes)


class Overwriting(Written):
    """Does its arithmetic in the memory of its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x.sub_(x.mean(-1, keepdim=True))
        scale = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5)
        return centred.mul_(scale).mul(self.weight).add(self.bias)


def test_an_input_that_is_overwritten_is_read_before() -> None:
    torch.manual_seed(4)
    model, x = nn.Sequential(nn.Linear(12, 12), Overwriting()), torch.randn(2, 5, 12)
    with torch.no_grad():
        expected = model[0](x).mean(-1).flatten().tolist()
    (norm,) = measure_activations(model, x, verify=True).norms
    assert norm.before is not None
    assert norm.before.mean == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert norm.error is not None
    assert norm.error < 1e-6


def test_without_the_check_nothing_is_recomputed() -> None:
    statistics = measure_activations(nn.Sequential(nn.LayerNorm(12)), torch.randn(2, 5, 12))
    assert not statistics.verified
    assert statistics.norms[0].error is None


class Computed(nn.Module):
    """A gain that a network computes: no formula of stored values."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (12,), self.linear.weight.sigmoid().mean(0))


def test_a_gain_that_is_not_stored_is_left_unchecked() -> None:
    (norm,) = measure_activations(Computed(), torch.randn(2, 5, 12), verify=True).norms
    assert norm.error is None
    assert norm.problem is None


# The command line.


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["stats", "demo:post-norm", "-i", "a cat", *arguments])


def test_the_command_shows_the_error_of_each_norm() -> None:
    document = json.loads(command("--verify", "-f", "json").stdout)
    assert all(0 < norm["error"] < 1e-6 for norm in document["norms"])
    assert all(len(norm["normalized"]["variance"]) for norm in document["norms"])
    shown = command("--verify").stdout
    assert "outputs recomputed in float64" in shown
    assert all(norm["name"] in shown for norm in document["norms"])
    plain = json.loads(command("-f", "json").stdout)
    assert not any("error" in norm for norm in plain["norms"])


def test_thresholds_are_options() -> None:
    found = json.loads(command("--verify", "--threshold", "NS405=1e-12", "-f", "json").stdout)
    (finding,) = [item for item in found["findings"] if item["code"] == "NS405"]
    assert finding["message"].endswith("norms")
    assert finding["first"] != finding["last"]


@pytest.mark.parametrize("typed", ["NS403=1", "NS402", "NS402=x", "NS404=-1", "NS405=nan"])
def test_what_is_no_threshold_is_a_usage_error(typed: str) -> None:
    result = command("--threshold", typed)
    assert result.exit_code == 2
    assert repr(typed) in result.stderr
