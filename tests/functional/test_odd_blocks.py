"""One block that is wired otherwise than its stack: it is told for what it is."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from normscope import inspect_module

WIDTH = 16
Value = torch.Tensor


class Block(nn.Module):
    """Two branches and two norms, wired by a function."""

    def __init__(self, wiring: "Callable[[Block, Value], Value]") -> None:
        super().__init__()
        self.wiring = wiring
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.f = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))
        self.g = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def forward(self, x: Value) -> Value:
        return self.wiring(self, x)


def pre(block: Block, x: Value) -> Value:
    x = x + block.f(block.n1(x))
    return x + block.g(block.n2(x))


def post(block: Block, x: Value) -> Value:
    x = block.n1(x + block.f(x))
    return block.n2(x + block.g(x))


def skips_from_norms(block: Block, x: Value) -> Value:
    n = block.n1(x)
    n = block.n2(n + block.f(n))
    return n + block.g(n)


def without_second_norm(block: Block, x: Value) -> Value:
    x = x + block.f(block.n1(x))
    return x + block.g(x)


class Model(nn.Module):
    def __init__(self, wirings: list[Callable[[Block, Value], Value]]) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Block(wiring) for wiring in wirings)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x: Value) -> Value:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def found(odd: Callable[[Block, Value], Value], usual: Callable[[Block, Value], Value]) -> list:
    model = Model([usual, usual, odd, usual]).eval()
    report = inspect_module(model, (torch.randn(2, 5, WIDTH),))
    return [
        [(part.placement.value, part.formula) for part in block.branches] for block in report.blocks
    ]


PRE, POST = ("pre-norm", "x + f(N(x))"), ("post-norm", "N(x + f(x))")


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (post, [POST, POST]),
        (skips_from_norms, [("other", "N(x) + f(N(x))")] * 2),
        (without_second_norm, [PRE, ("no-norm", "x + f(x)")]),
    ],
)
def test_in_a_pre_norm_stack(odd: Callable[[Block, Value], Value], told: list) -> None:
    assert found(odd, pre) == [[PRE, PRE], [PRE, PRE], told, [PRE, PRE]]


def test_a_pre_norm_block_in_a_post_norm_stack() -> None:
    assert found(pre, post)[2] == [PRE, PRE]
