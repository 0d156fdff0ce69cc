"""What is remembered of operations on `meta` never changes what a trace says."""

import pytest
import torch
from torch import nn

from normscope.operations import MATRIX_PRODUCTS
from normscope.tracing import trace_module
from normscope.tracing.devices import on_meta
from normscope.tracing.known_results import KnownResults, argument_key


class Repeating(nn.Module):
    """The same operations over and over, with views, writes, casts and tuples among them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = layer(norm(x)).transpose(0, 1)
            hidden = hidden * 2 + hidden * 2.0 + hidden.double().float()
            hidden += hidden.max(-1, keepdim=True)[0]
            x = x + torch.cat([hidden.transpose(0, 1), x], -1)[..., :8]
        return x


def traced() -> object:
    with torch.device("meta"):
        module = Repeating()
    return trace_module(module, {"x": torch.ones(2, 3, 8)})


def test_a_trace_is_the_same_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = traced()
    monkeypatch.setattr(
        KnownResults,
        "run",
        lambda _self, func, _schema, args, kwargs: func(*on_meta(args), **on_meta(kwargs)),
    )
    assert traced() == remembered


def test_an_operation_is_derived_once_for_each_set_of_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derived = []
    remember = KnownResults._remember

    def counted(self: KnownResults, key: object, result: object) -> None:
        derived.append(key)
        remember(self, key, result)

    monkeypatch.setattr(KnownResults, "_remember", counted)
    traced()
    products = [key for key in derived if key[0]._schema.name.partition("::")[2] in MATRIX_PRODUCTS]
    assert len(products) == 1


@pytest.mark.parametrize("others", [(1, True), (1, 1.0), ((1,), (1.0,)), ("1", 1)])
def test_equal_numbers_of_other_kinds_are_other_arguments(others: tuple[object, object]) -> None:
    first, second = others
    assert argument_key(first) != argument_key(second)


def test_shape_stride_and_dtype_make_the_difference() -> None:
    plain = torch.empty(2, 3)
    keys = {
        argument_key(plain),
        argument_key(plain.t()),
        argument_key(torch.empty(3, 2).t()),
        argument_key(plain.double()),
    }
    assert len(keys) == 4
    assert argument_key(plain) == argument_key(torch.ones(2, 3))
