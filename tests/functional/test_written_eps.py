"""eps of norms that are written out: as it stands beside what the norm's kind is defined by."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from normscope.activations import measure_activations
from specimens.written import WIDTH, Written, report_of

EPS = 0.25
LAST = {"dim": -1, "keepdim": True}
Forward = Callable[[Written, torch.Tensor], torch.Tensor]


def centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(**LAST)


def length(x: torch.Tensor) -> torch.Tensor:
    return x.norm(**LAST)


FORMS: dict[str, tuple[Forward, str, float, str]] = {
    "a mean": (
        lambda m, x: x * torch.rsqrt(x.pow(2).mean(**LAST) + EPS),
        "RMSNorm",
        EPS,
        "inside",
    ),
    "a sum over the count": (
        lambda m, x: x * torch.rsqrt(x.pow(2).sum(**LAST) / WIDTH + EPS),
        "RMSNorm",
        EPS,
        "inside",
    ),
    "a sum, and the root of the count on the result": (
        lambda m, x: math.sqrt(WIDTH) * (x * torch.rsqrt(x.pow(2).sum(**LAST) + EPS)),
        "RMSNorm",
        EPS / WIDTH,
        "inside",
    ),
    "a length over the root of the count": (
        lambda m, x: x / (length(x) * WIDTH**-0.5 + EPS),
        "RMSNorm",
        EPS,
        "outside",
    ),
    "the root of the count over a length that is clamped": (
        lambda m, x: x * (math.sqrt(WIDTH) / length(x).clamp_min(EPS)),
        "RMSNorm",
        EPS / math.sqrt(WIDTH),
        "clamp",
    ),
    "a mean that is clamped": (
        lambda m, x: x * torch.rsqrt(x.pow(2).mean(**LAST).clamp_min(EPS)),
        "RMSNorm",
        math.sqrt(EPS),
        "clamp",
    ),
    "a length": (
        lambda m, x: functional.normalize(x, dim=-1, eps=EPS),
        "L2Norm",
        EPS,
        "clamp",
    ),
    "a centred sum over the count": (
        lambda m, x: centred(x) * torch.rsqrt(centred(x).pow(2).sum(**LAST) / WIDTH + EPS),
        "LayerNorm",
        EPS,
        "inside",
    ),
    "a centred length": (
        lambda m, x: functional.normalize(centred(x), dim=-1, eps=EPS),
        "LayerNorm",
        EPS / math.sqrt(WIDTH),
        "clamp",
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_eps_is_that_of_the_kind(form: tuple[Forward, str, float, str]) -> None:
    forward, kind, eps, position = form
    (norm,) = report_of(forward).norms
    assert (norm.kind, norm.eps_position) == (kind, position)
    assert norm.eps == pytest.approx(eps, rel=1e-6)


@pytest.mark.parametrize("size", [0.01, 1.0])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_reported_facts_give_the_output(
    form: tuple[Forward, str, float, str], size: float
) -> None:
    torch.manual_seed(0)
    tokens = size * torch.randn(2, 5, WIDTH)
    (norm,) = measure_activations(Written(form[0]).eval(), tokens, verify=True).norms
    assert norm.error is not None
    assert norm.error < 1e-6


def test_eps_as_it_is_written_is_said_without_the_noise_of_a_quotient() -> None:
    (norm,) = report_of(lambda m, x: x * torch.rsqrt(x.pow(2).sum(**LAST) / WIDTH + 1e-6)).norms
    assert norm.eps == 1e-6
