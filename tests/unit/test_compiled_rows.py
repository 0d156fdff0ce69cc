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
from specimens.readings import readings_of

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
    lost = (found.variance - expected.variance).abs() <= 1e-14 * scale**2
    assert (close | lost)[finite].all()
    assert torch.equal(found.variance.isnan(), expected.variance.isnan())


class Wrapped(torch.Tensor):
    """A class of tensors that could hold its values elsewhere."""


REFUSED = {
    "float64": torch.randn(4, 8).double(),
    "turned": torch.randn(8, 4).T,
    "negated": torch._neg_view(torch.randn(4, 8)),
    "subclass": torch.randn(4, 8).as_subclass(Wrapped),
    "meta": torch.empty(4, 8, device="meta"),
    "no rows": torch.empty(0, 8),
    "no features": torch.empty(4, 0),
    "unwritten zeros": torch._efficientzerotensor((4, 8)),
    "whole numbers": torch.ones(4, 8, dtype=torch.int32),
}


@pytest.fixture
def untouchable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that must not be called."""

    def called(*_: object) -> float:
        raise AssertionError("memory was read that may hold something else")

    monkeypatch.setattr(compiled, "_PROGRAM", called)


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("untouchable")
def test_what_does_not_lie_there_as_it_is_is_not_read_from_memory(value: torch.Tensor) -> None:
    plain = torch.randn(value.shape)
    assert compiled.measure_rows(value, Shelf()) is None
    assert compiled.measure_pair(value, plain, Shelf()) is None
    assert compiled.measure_pair(plain, value, Shelf()) is None
    assert compiled.measure_pair(value, value, Shelf()) is None


@pytest.mark.parametrize(
    "other", [torch.randn(4, 9), torch.randn(5, 8), torch.randn(32), torch.randn(4, 8).bfloat16()]
)
@pytest.mark.usefixtures("untouchable")
def test_two_that_differ_are_no_pair(other: torch.Tensor) -> None:
    assert compiled.measure_pair(torch.randn(4, 8), other, Shelf()) is None


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_a_pair_gives_what_each_gives(dtype: torch.dtype) -> None:
    one, other = torch.randn(3, 5, 40).to(dtype), 300 * torch.randn(3, 5, 40).to(dtype)
    readings = readings_of(2)
    readings.take_both((0, 1), one, other)
    for index, value in enumerate((one, other)):
        reduced = readings.reduced(index)
        assert reduced is not None
        found, expected = reduced.moments(), measure_on_cpu(value.reshape(15, 40))
        assert found.channel.shape == (3, 5)
        assert found.channel.ravel().tolist() == expected.place.tolist()
        assert found.variance.ravel() == pytest.approx(expected.variance.numpy(), rel=1e-5)
    assert readings.magnitudes.keys() == {1}


def test_subnormals_of_float16_stay_where_a_processor_flushes_those_of_float32() -> None:
    value = torch.full((3, 20), 2e-7, dtype=torch.float16)
    torch.set_flush_denormal(True)
    try:
        found = moments(value)
    finally:
        torch.set_flush_denormal(False)
    assert found.peak.tolist() == [float(value[0, 0])] * 3
    assert found.mean.tolist() == pytest.approx([float(value[0, 0])] * 3)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_a_negated_or_turned_value_is_reduced_as_what_it_means(dtype: torch.dtype) -> None:
    value = torch.randn(6, 40).to(dtype)
    for meant in (torch._neg_view(value), value.T):
        wide = meant.double()
        found = moments(meant)
        assert torch.allclose(found.mean, wide.mean(-1), atol=1e-6)
        assert torch.allclose(found.variance, wide.var(-1, correction=0), rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        value = torch.randn(101, 1000)
        found = moments(value)
    finally:
        torch.set_num_threads(before)
    assert torch.allclose(found.variance, value.double().var(-1, correction=0), rtol=1e-5)
    assert torch.equal(found.place, value.abs().argmax(-1))
