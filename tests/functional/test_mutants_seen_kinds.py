"""What a branch computes, where a program of mutation testing found no other test of it."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from specimens.written import WIDTH, stacked


def linears(names: str) -> dict[str, nn.Module]:
    return {name: nn.Linear(WIDTH, WIDTH) for name in names}


def convolutions(names: str, size: int = 1, groups: int = 1) -> dict[str, nn.Module]:
    made = (nn.Conv1d(WIDTH, WIDTH, size, padding="same", groups=groups) for _ in names)
    return dict(zip(names, made, strict=True))


def along(part: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Run a convolution over the tokens."""
    return part(x.transpose(1, 2)).transpose(1, 2)


def over_grid(part: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Run a convolution over 6 tokens as a grid of 2 by 3."""
    grid = x.transpose(1, 2).unflatten(-1, (2, 3))
    return part(grid).flatten(2).transpose(1, 2)


def scanned(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A state space without a loop: its decays are exponentials of steps that the data chose."""
    step = functional.softplus(m.a(x))
    decay = torch.exp(-step.cumsum(1))
    return m.b(decay * torch.cumsum(step * x / decay, 1))


def experts(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Each token takes the stored weight of the expert that scores best."""
    chosen = m.a(x).argmax(-1)
    stored = torch.stack((m.b.weight, m.c.weight, m.b.weight + m.c.weight))
    return (stored[chosen % 3] @ x[..., None])[..., 0]


def recurrent(m: nn.Module, x: torch.Tensor, steps: int = 3) -> torch.Tensor:
    """Apply one weight again and again, to what it gave and to the next two tokens."""
    state = torch.zeros_like(x[:, :2])
    found = []
    for step in range(steps):
        state = torch.tanh(m.a(state) + x[:, 2 * step : 2 * step + 2])
        found.append(state)
    return m.b(torch.cat(found * (3 // steps), dim=1))


def in_order_of_experts(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Put the tokens in the order of the experts that score best, and back."""
    order = m.a(x).sum(-1).argsort(-1)
    sorted_x = x.gather(1, order[..., None].expand_as(x))
    return m.c(torch.relu(m.b(sorted_x))).gather(1, order.argsort(-1)[..., None].expand_as(x))


BRANCHES: dict[str, tuple[str, Callable, Callable]] = {
    "products around a convolution of a grid": (
        "mlp",
        lambda m, x: m.b(torch.relu(over_grid(m.c, m.a(x)))),
        lambda: {**linears("ab"), "c": nn.Conv2d(16, 16, 3, padding=1, groups=16)},
    ),
    "products around a convolution of a sequence": (
        "conv",
        lambda m, x: m.b(torch.relu(along(m.c, m.a(x)))),
        lambda: {**linears("ab"), **convolutions("c", size=3)},
    ),
    "products around a convolution of two places": (
        "conv",
        lambda m, x: m.b(torch.relu(along(m.c, m.a(x))[:, 1:])),
        lambda: {**linears("ab"), "c": nn.Conv1d(WIDTH, WIDTH, 2, padding=1)},
    ),
    "products around a convolution of one place": (
        "mlp",
        lambda m, x: m.b(torch.relu(along(m.c, m.a(x)))),
        lambda: {**linears("ab"), **convolutions("c")},
    ),
    "one convolution of one place": ("conv", lambda m, x: along(m.c, x), lambda: convolutions("c")),
    "two convolutions of one place": (
        "mlp",
        lambda m, x: along(m.d, torch.relu(along(m.c, x))),
        lambda: convolutions("cd"),
    ),
    "convolutions of one place around one of three": (
        "conv",
        lambda m, x: along(m.d, along(m.e, functional.glu(along(m.c, x).repeat(1, 1, 2), -1))),
        lambda: {**convolutions("cd"), **convolutions("e", size=3, groups=16)},
    ),
    "a convolution that is read by products": (
        "conv",
        lambda m, x: m.b(torch.relu(m.a(over_grid(m.c, x)))),
        lambda: {**linears("ab"), "c": nn.Conv2d(16, 16, 3, padding=1, groups=16)},
    ),
    "products around an exponential": (
        "mlp",
        lambda m, x: m.b(torch.exp(-(m.a(x) ** 2))),
        lambda: linears("ab"),
    ),
    "products around a softplus": (
        "mlp",
        lambda m, x: m.b(functional.softplus(m.a(x))),
        lambda: linears("ab"),
    ),
    "products around an average": (
        "mlp",
        lambda m, x: m.b(functional.avg_pool1d(m.a(x), 3, 1, 1)),
        lambda: linears("ab"),
    ),
    "a scan of chosen steps": ("ssm", scanned, lambda: linears("ab")),
    "keys times values, and no softmax": (
        "attention",
        lambda m, x: m.a(x) @ (torch.relu(m.b(x)).transpose(1, 2) @ m.c(x)),
        lambda: linears("abc"),
    ),
    "weights over the tokens": (
        "attention",
        lambda m, x: m.b(torch.relu(m.a(x)) * (m.c(x).softmax(1) * x).sum(1, keepdim=True)),
        lambda: linears("abc"),
    ),
    "one weight applied three times": ("rnn", recurrent, lambda: linears("ab")),
    "one weight applied once": ("mlp", lambda m, x: recurrent(m, x, 1), lambda: linears("ab")),
    "tokens in the order of their experts": ("moe", in_order_of_experts, lambda: linears("abc")),
    "tokens in an order of its own": (
        "mlp",
        lambda m, x: m.b(torch.relu(m.a(x)[:, torch.tensor([5, 4, 3, 2, 1, 0])])),
        lambda: linears("ab"),
    ),
    "a chosen expert and one that all tokens take": (
        "moe",
        lambda m, x: experts(m, x) + m.e(torch.relu(m.d(x))),
        lambda: linears("abcde"),
    ),
    "the weights of a chosen expert": ("moe", experts, lambda: linears("abc")),
    "an average": ("pooling", lambda m, x: functional.avg_pool1d(x, 3, 1, 1), dict),
    "a Fourier transform": (
        "fourier",
        lambda m, x: torch.fft.fft(m.a(x)).real,
        lambda: linears("a"),
    ),
}


@pytest.mark.parametrize(("kind", "branch", "parts"), BRANCHES.values(), ids=BRANCHES)
def test_what_a_branch_computes(kind: str, branch: Callable, parts: Callable) -> None:
    report = stacked(
        lambda m, x: x + branch(m, m.n(x)), lambda: {"n": nn.LayerNorm(WIDTH), **parts()}
    )
    found = [
        (part.kind.value, part.placement.value)
        for block in report.blocks
        for part in block.branches
    ]
    assert found == [(kind, "pre-norm")] * 2


FACTORS = {
    "a parameter": (lambda m, x, y: torch.addcmul(x, m.w[0], y), "x + γ·f(N(x))"),
    "a gate": (lambda m, x, y: torch.addcmul(x, torch.sigmoid(m.a(m.n(x))), y), "x + g·f(N(x))"),
    "a number of the sum": (lambda m, x, y: torch.add(x, y, alpha=0.5), "x + 0.5·f(N(x))"),
    "a difference": (lambda m, x, y: x - y, "x - f(N(x))"),
    "a number divided by": (lambda m, x, y: x + y / 4, "x + 0.25·f(N(x))"),
    "a mean with the skip": (lambda m, x, y: (x + y) / 2, "x + f(N(x))"),
    "a larger skip": (lambda m, x, y: 2 * x + y, "2·x + f(N(x))"),
    "a part of the way": (lambda m, x, y: torch.lerp(x, y, 0.5), "x + γ·f(N(x))"),
}


@pytest.mark.parametrize(("add", "formula"), FACTORS.values(), ids=FACTORS)
def test_the_scale_of_a_branch_is_in_its_formula(add: Callable, formula: str) -> None:
    report = stacked(
        lambda m, x: add(m, x, m.c(torch.relu(m.b(m.n(x))))),
        lambda: {"n": nn.LayerNorm(WIDTH), **linears("abc")},
    )
    assert [part.formula for part in report.blocks[-1].branches] == [formula]
