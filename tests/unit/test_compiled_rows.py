"""The compiled program beside the operations of torch, and what it is not given."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from normscope.activations import compiled
from normscope.activations.reduce import reduce_rows
from normscope.activations.shelf import Shelf
from normscope.activations.torch_moments import TensorMoments, measure_on_cpu

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SPECIAL = [0.0, -0.0, 1e-6, 6e4, math.inf, -math.inf, math.nan, 1e-40, 1e30]


@st.composite
def rows(draw: st.DrawFn) -> torch.Tensor:
    """Rows of any width, at any offset, with special values here and there."""
    count = draw(st.integers(1, 9))
    length = draw(st.sampled_from([1, 2, 31, 32, 33, 64, 100, 2047, 2048, 2049, 5000]))
    torch.manual_seed(draw(st.integers(0, 1 << 16)))
    found = torch.randn(count, length) * draw(st.sampled_from([1e-12, 0.02, 1.0, 50.0, 1e12]))
    found += draw(st.sampled_from([0.0, 0.0, 1.0, 1e4]))
    for value in draw(st.lists(st.sampled_from(SPECIAL), max_size=3)):
        found[draw(st.integers(0, count - 1)), draw(st.integers(0, length - 1))] = value
    return found.to(draw(st.sampled_from(DTYPES)))


def moments(value: torch.Tensor) -> TensorMoments:
    found = reduce_rows(value, Shelf()).moments()
    columns = (found.mean, found.variance, found.peak, found.channel)
    return TensorMoments(*(torch.from_numpy(column) for column in columns))


@given(value=rows())
@settings(max_examples=200, deadline=None)
def test_both_ways_give_the_same(value: torch.Tensor) -> None:
    """Without the program the test compares torch with itself; `.ci/run` sees to it."""
    expected, found = measure_on_cpu(value), moments(value)
    scale = value.double().abs().amax(-1)
    assert torch.equal(found.place, expected.place)
    assert torch.equal(found.peak.nan_to_num(-1.0), expected.peak.double().nan_to_num(-1.0))
    finite = scale.isfinite()
    error = (found.mean - expected.mean)[finite].abs()
    assert (error <= 1e-6 * scale[finite]).all()
    close = torch.isclose(found.variance, expected.variance, rtol=2e-5, atol=0.0, equal_nan=True)
    assert (close | (found.variance - expected.variance <= 1e-14 * scale**2))[finite].all()
    assert torch.equal(found.variance.isnan(), expected.variance.isnan())


class Wrapped(torch.Tensor):
    """A class of tensors that could hold its values elsewhere."""


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(4, 8).double(),
        torch.randn(4, 8).T,
        torch._neg_view(torch.randn(4, 8)),
        torch.randn(4, 8).as_subclass(Wrapped),
        torch.empty(4, 8, device="meta"),
        torch.empty(0, 8),
        torch.empty(4, 0),
    ],
    ids=["float64", "turned", "negated", "subclass", "meta", "no rows", "no features"],
)
def test_what_does_not_lie_there_as_it_is_is_not_read_from_memory(value: torch.Tensor) -> None:
    assert compiled.measure_rows(value, Shelf()) is None


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_a_negated_or_turned_value_is_reduced_as_what_it_means(dtype: torch.dtype) -> None:
    value = torch.randn(6, 40).to(dtype)
    for meant in (torch._neg_view(value), value.T):
        wide = meant.double()
        found = moments(meant)
        assert torch.allclose(found.mean, wide.mean(-1), atol=1e-6)
        assert torch.allclose(found.variance, wide.var(-1, correction=0), rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_rows(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        value = torch.randn(101, 1000)
        found = moments(value)
    finally:
        torch.set_num_threads(before)
    assert torch.allclose(found.variance, value.double().var(-1, correction=0), rtol=1e-5)
    assert torch.equal(found.place, value.abs().argmax(-1))
