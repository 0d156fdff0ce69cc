"""Each fact of a norm is recovered from its outputs alone, and a false one is caught."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_module
from normscope.inspection import NormReport
from normscope.verification import NotChecked, VerifiedNorm
from normscope.verification.norm_checks import verify_norm, verify_norms
from specimens.norms import STYLES, build_norm

WIDTH = 12
STYLE_NAMES = (*STYLES, "layer_module", "rms_module")


class Around(nn.Module):
    """A norm between two products, so that it is found where it stands."""

    def __init__(self, norm: nn.Module, images: bool) -> None:
        super().__init__()
        pair = [
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1) if images else nn.Linear(WIDTH, WIDTH)
            for _ in range(2)
        ]
        self.a, self.n, self.b = pair[0], norm, pair[1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.n(self.a(x)))


class Normalized(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.normalize(x, dim=1)


class ChannelsFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = nn.LayerNorm(WIDTH, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class OutsideTheRoot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return self.w * (centred / (centred.square().mean(-1, keepdim=True).sqrt() + 1e-4))


class Stored(nn.Module):
    """A batch norm by stored statistics, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self.register_buffer("v", torch.rand(WIDTH) + 0.5)
        self.register_buffer("m", torch.rand(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.w * (self.v + 1e-5).rsqrt()
        shift = self.b - self.m * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)


class Scaled(nn.Module):
    """No norm: x·w + b."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.w + self.b


def reported(norm: nn.Module, *, images: bool = False) -> tuple[nn.Module, NormReport]:
    torch.manual_seed(0)
    module = Around(norm, images).eval()
    x = torch.randn(3, WIDTH, 7, 9) if images else torch.randn(3, 7, WIDTH)
    (report,) = [one for one in inspect_module(module, x).norms if one.module is not None]
    return module, report


def disagreeing(root: nn.Module, report: NormReport) -> list[str]:
    found = verify_norm(root, report)
    assert isinstance(found, VerifiedNorm), found
    return [check.fact for check in found.checks if not check.agrees]


@pytest.mark.parametrize("style", STYLE_NAMES)
def test_a_norm_written_in_any_way(style: str) -> None:
    assert disagreeing(*reported(build_norm(style, WIDTH))) == []


IMAGE_NORMS = {
    "batch": lambda: nn.BatchNorm2d(WIDTH, eps=1e-3),
    "group": lambda: nn.GroupNorm(4, WIDTH),
    "one group": lambda: nn.GroupNorm(1, WIDTH),
    "a group a channel": lambda: nn.GroupNorm(WIDTH, WIDTH),
    "instance": lambda: nn.InstanceNorm2d(WIDTH, affine=True),
    "l2": Normalized,
    "channels first": ChannelsFirst,
}


@pytest.mark.parametrize("name", IMAGE_NORMS)
def test_a_norm_of_images(name: str) -> None:
    assert disagreeing(*reported(IMAGE_NORMS[name](), images=True)) == []


def test_eps_outside_of_the_root() -> None:
    root, report = reported(OutsideTheRoot())
    assert (report.eps, report.eps_position) == (1e-4, "outside")
    assert disagreeing(root, report) == []


@pytest.mark.parametrize(
    ("false", "caught"),
    [
        ({"kind": "RMSNorm"}, ["kind"]),
        ({"kind": "L2Norm"}, ["kind"]),
        ({"gain": "1+w"}, ["gain"]),
        ({"gain": "none"}, ["gain"]),
        ({"bias": False}, ["bias"]),
        ({"eps": 1e-6}, ["eps"]),
        ({"eps": None}, ["eps"]),
        ({"eps_position": "outside"}, ["eps_position"]),
        ({"groups": 2, "shape": (WIDTH // 2,)}, ["groups"]),
    ],
)
def test_each_false_fact_is_caught(false: dict[str, object], caught: list[str]) -> None:
    root, report = reported(build_norm("layer_module", WIDTH))
    assert disagreeing(root, replace(report, **false)) == caught


def test_a_false_gain_of_an_offset_norm_is_caught() -> None:
    root, report = reported(build_norm("rms_offset", WIDTH))
    assert report.gain == "1+w"
    assert disagreeing(root, replace(report, gain="w")) == ["gain"]


def test_false_axes_are_caught() -> None:
    root, report = reported(nn.InstanceNorm2d(WIDTH), images=True)
    assert disagreeing(root, replace(report, axes=(1, 2, 3))) == ["axes"]


def test_what_is_no_norm_is_said_so() -> None:
    root, report = reported(build_norm("layer_module", WIDTH))
    root.n = Scaled()
    found = verify_norm(root, report)
    assert isinstance(found, VerifiedNorm)
    (check,) = found.checks
    assert (check.fact, check.reported) == ("kind", "LayerNorm")
    assert check.observed == "no statistic of its input"
    assert not check.agrees


def test_stored_statistics_are_not_checked() -> None:
    root, report = reported(Stored(), images=True)
    found = verify_norm(root, report)
    assert isinstance(found, NotChecked)
    assert found.reason == "it normalizes by stored statistics"


def test_a_norm_that_needs_more_than_its_input_is_not_checked() -> None:
    class Gated(nn.LayerNorm):
        def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * gate

    root, report = reported(build_norm("layer_module", WIDTH))
    root.n = Gated(WIDTH)
    found = verify_norm(root, report)
    assert isinstance(found, NotChecked)
    assert "TypeError" in found.reason


def test_the_module_itself_is_left_as_it_is() -> None:
    root, report = reported(build_norm("layer_module", WIDTH))
    before = {name: value.clone() for name, value in root.state_dict().items()}
    verify_norm(root, report)
    assert all(torch.equal(value, before[name]) for name, value in root.state_dict().items())
    assert not root.training


def test_a_norm_on_meta() -> None:
    root, report = reported(build_norm("rms_offset", WIDTH))
    assert disagreeing(root.to("meta"), report) == []


def test_alike_modules_are_probed_once_and_all_named() -> None:
    root = nn.Sequential(*(Around(build_norm("layer_module", WIDTH), images=False) for _ in "abc"))
    root[2].n.eps = 1e-3
    norms = inspect_module(root.eval(), torch.randn(3, 7, WIDTH)).norms
    found = list(verify_norms(root, norms))
    assert [one.module for one in found] == ["0.n", "1.n", "2.n"]
    assert all(one.agrees for one in found)
    told = {check.observed for one in found for check in one.checks if check.fact == "eps"}
    assert told == {"1e-05", "0.001"}
