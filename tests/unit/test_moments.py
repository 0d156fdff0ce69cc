"""Moments of rows against float64, in every way that they are taken, and their merging."""

import functools
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from normscope.activations import compiled, reduce
from normscope.activations.moments import Accumulated, merge_moments
from normscope.activations.reduce import ReducedRows, reduce_rows, rows_of
from normscope.activations.shelf import Shelf
from normscope.activations.torch_moments import TensorMoments, measure_on_accelerator
from specimens.readings import readings_of

WAYS = ["in torch", "in parts", "accelerator", *["compiled"] * compiled.was_compiled()]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A compiled program does it, where there is one; an accelerator has operations of its own."""
    if request.param != "compiled":
        monkeypatch.setattr(compiled, "_PROGRAM", None)
    if request.param == "in parts":
        monkeypatch.setattr(reduce, "_CACHED", 64)
    if request.param == "accelerator":
        monkeypatch.setattr(reduce, "measure_on_cpu", measure_on_accelerator)
    return str(request.param)


def on_a_cpu(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in the ways of a CPU, which has float64."""
    ways = [way for way in WAYS if way != "accelerator"]
    used = pytest.mark.usefixtures("way")(test)
    return pytest.mark.parametrize("way", ways, indirect=True)(used)


class Found(NamedTuple):
    mean: torch.Tensor
    variance: torch.Tensor
    peak: torch.Tensor
    channel: torch.Tensor


def moments(value: torch.Tensor, axes: tuple[int, ...] = (-1,)) -> Found:
    found = reduce_rows(rows_of(value, axes, None), Shelf()).moments()
    columns = (found.mean, found.variance, found.peak, found.channel)
    return Found(*(torch.from_numpy(column) for column in columns))


def assert_exact(found: Found, rows: torch.Tensor, tolerance: float = 1e-5) -> None:
    wide = rows.double()
    expected = wide.var(-1, correction=0)
    assert torch.allclose(found.variance.double(), expected, rtol=tolerance, atol=0)
    scale = wide.abs().amax(-1)
    assert ((found.mean.double() - wide.mean(-1)).abs() <= 1e-6 * scale).all()
    assert found.peak.double().equal(scale)
    assert found.channel.equal(wide.abs().max(-1).indices)


@pytest.mark.parametrize("width", [1, 7, 64, 96, 100, 768, 4096, 20000])
@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.usefixtures("way")
def test_rows_of_any_width_agree_with_float64(width: int, offset: float) -> None:
    torch.manual_seed(width)
    rows = torch.randn(40, width) * 3 + offset
    found = moments(rows)
    if width == 1:
        assert found.variance.double().abs().max() < 1e-6
        return
    assert_exact(found, rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.usefixtures("way")
def test_rows_that_were_turned_around_are_read_in_their_order(dtype: torch.dtype) -> None:
    torch.manual_seed(4)
    turned = torch.randn(256, 30).to(dtype).t()
    assert not turned.is_contiguous()
    assert_exact(moments(turned), turned.contiguous())
    assert_exact(moments(turned[None]), turned.contiguous()[None])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.usefixtures("way")
def test_every_dtype_is_reduced_in_float32_or_wider(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    rows = (torch.randn(50, 768) * 2 + 0.5).to(dtype)
    assert_exact(moments(rows), rows, 1e-12 if dtype is torch.float64 else 1e-5)


@pytest.mark.usefixtures("way")
def test_equal_peaks_of_either_sign_give_the_first_place() -> None:
    rows = torch.zeros(3, 128)
    rows[0, [3, 70]] = torch.tensor([-2.0, 2.0])
    rows[1, [3, 70]] = torch.tensor([2.0, -2.0])
    rows[2, [64, 65]] = torch.tensor([2.0, 2.0])
    assert moments(rows).channel.tolist() == [3, 3, 64]


@pytest.mark.usefixtures("way")
def test_a_large_offset_does_not_cancel_the_variance() -> None:
    torch.manual_seed(2)
    shifted = 1e4 + 1e-2 * torch.randn(20, 768)
    plain = torch.randn(20, 768)
    both = torch.cat([shifted, plain])
    assert_exact(moments(shifted), shifted)
    assert_exact(moments(both), both)
    # What is guarded against: the same sums in float32 lose every digit.
    square, mean = shifted.square().mean(-1), shifted.mean(-1)
    assert not torch.allclose((square - mean * mean).double(), shifted.double().var(-1), rtol=0.5)


@on_a_cpu
@pytest.mark.parametrize("scale", [1e25, 1e-25, 1e-40])
def test_squares_out_of_range_are_taken_again(scale: float) -> None:
    torch.manual_seed(3)
    rows = torch.cat([torch.randn(10, 64) * scale, torch.randn(10, 64)])
    assert_exact(moments(rows), rows)


@pytest.mark.usefixtures("way")
def test_what_is_not_finite_stays_visible_and_in_its_row() -> None:
    rows = torch.randn(4, 64)
    rows[1, 5], rows[2, 7] = math.nan, -math.inf
    found = moments(rows)
    assert found.peak[1].isnan()
    assert found.peak[2] == math.inf
    assert found.channel[1:3].tolist() == [5, 7]
    assert found.variance[1:3].isnan().all()
    assert_exact(
        Found(*(column[::3] for column in found)),
        rows[::3],
    )


def nan_first(dtype: torch.dtype) -> torch.Tensor:
    rows = torch.randn(3, 64, dtype=torch.float32).to(dtype)
    rows[0, 9], rows[1, [4, 60]], rows[2, 30] = math.nan, math.inf, -math.inf
    return rows


@on_a_cpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_nan_is_greater_than_infinity_in_every_dtype(dtype: torch.dtype) -> None:
    found = moments(nan_first(dtype))
    assert found.peak[0].isnan()
    assert found.peak[1:].tolist() == [math.inf, math.inf]
    assert found.channel.tolist() == [9, 4, 30]


@on_a_cpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_ties_and_subnormals_of_half_precision_give_the_first_place(dtype: torch.dtype) -> None:
    tiny = torch.finfo(dtype).smallest_normal / 4
    rows = torch.zeros(4, 96, dtype=dtype)
    rows[0, [40, 41]] = torch.tensor([-tiny, tiny], dtype=dtype)
    rows[1, [95, 17]] = torch.tensor([3.0, -3.0], dtype=dtype)
    rows[2] = torch.finfo(dtype).max
    found = moments(rows)
    assert found.channel.tolist() == [40, 17, 0, 0]
    assert found.peak.tolist() == [tiny, 3.0, torch.finfo(dtype).max, 0.0]


@pytest.mark.usefixtures("way")
def test_constant_rows_have_no_variance() -> None:
    rows = torch.tensor([[0.0] * 64, [3.0] * 64])
    assert moments(rows).variance.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("axes", "groups", "expected"),
    [
        ((0, 2, 3), None, (12,)),
        ((1, 2, 3), 4, (2, 4)),
        ((2, 3), None, (2, 12)),
        ((-3, -2, -1), None, (2,)),
        ((1,), None, (2, 5, 6)),
    ],
)
def test_any_axes_are_brought_to_the_end(
    axes: tuple[int, ...], groups: int | None, expected: tuple[int, ...]
) -> None:
    value = torch.randn(2, 12, 5, 6)
    rows = rows_of(value, axes, groups)
    assert rows.shape[:-1] == expected
    split = value.unflatten(1, (4, 3)) if groups else value
    reduced = (2, 3, 4) if groups else axes
    assert torch.allclose(rows.var(-1), split.var(reduced), rtol=1e-5)


def test_groups_of_features_are_rows() -> None:
    value = torch.randn(2, 5, 12)
    assert torch.equal(rows_of(value, (-1,), 3), value.unflatten(-1, (3, 4)))


@pytest.mark.usefixtures("way")
def test_the_magnitude_is_asked_only_beside_massive_values() -> None:
    ordinary = torch.randn(30, 64)
    massive = ordinary.clone()
    massive[0, 0] = 500.0
    readings = readings_of(2)
    readings.take(0, ordinary)
    readings.take(1, massive)
    assert readings.magnitudes.keys() == {1}
    expected = float(massive.abs().median())
    assert float(readings.magnitudes[1]) == pytest.approx(expected, rel=1e-6)


def test_every_feature_has_its_share_in_the_sample_of_a_magnitude() -> None:
    """An even step that divides the row would see some features alone."""
    value = torch.ones(512, 768)
    value[:, ::3] = 3.0
    value[:, 0] = 200.0
    readings = readings_of(1)
    readings.take(0, value)
    assert float(readings.magnitudes[0]) == float(value.median()) == 1.0


# Merging.


def accumulated(values: list[float]) -> Accumulated:
    mean = sum(values) / len(values)
    return Accumulated(
        count=len(values),
        mean=mean,
        variance=sum((value - mean) ** 2 for value in values) / len(values),
        peak=max(abs(value) for value in values),
        peak_channel=max(range(len(values)), key=lambda index: abs(values[index])),
    )


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_merged_moments_are_those_of_the_whole_in_any_order(offset: float) -> None:
    source = random.Random(0)
    values = [offset + source.gauss(0, 3) for _ in range(500)]
    parts = [values[:3], values[3:4], values[4:200], values[200:]]
    whole = accumulated(values)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        merged = functools.reduce(merge_moments, (accumulated(parts[index]) for index in order))
        assert merged.count == 500
        assert merged.mean == pytest.approx(whole.mean, rel=1e-12)
        assert merged.variance == pytest.approx(whole.variance, rel=1e-9)
        assert merged.peak == whole.peak


def test_an_accelerator_is_asked_nothing() -> None:
    """What a tensor on `meta` cannot answer, one on a device answers only after waiting for it."""
    readings = readings_of(1)
    readings.take(0, torch.empty(5, 7, 64, device="meta", dtype=torch.float16))
    assert readings.magnitudes.keys() == {0}
    reduced = readings.reduced(0)
    assert isinstance(reduced, ReducedRows)
    assert isinstance(reduced.found, TensorMoments)
    assert reduced.found.variance.shape == (5 * 7,)


def test_merging_nothing_changes_nothing() -> None:
    some = accumulated([1.0, 2.0, 4.0])
    assert merge_moments(some, Accumulated()) == some
    assert merge_moments(Accumulated(), some) == some


def test_a_peak_that_is_no_number_survives_merging() -> None:
    broken = Accumulated(count=2, peak=math.nan, peak_channel=7)
    sound = accumulated([1.0, 2.0])
    for first, second in ((broken, sound), (sound, broken)):
        merged = merge_moments(first, second)
        assert math.isnan(merged.peak)
        assert merged.peak_channel == 7
