"""Quantiles of many values at constant memory."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normscope.activations.quantiles import QUANTILE_ERROR, Quantiles
from normscope.statistics import summarize

SHARES = (0.0, 0.01, 0.5, 0.9, 0.99, 1.0)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def counted(*parts: list[float]) -> Quantiles:
    found = Quantiles()
    for part in parts:
        found.add(np.array(part, dtype=np.float64))
    return found


def test_medians_and_percentiles_are_within_the_stated_error() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.lognormal(0, 3, 20001), rng.normal(0, 1, 20001), rng.uniform(1, 2, 20001)):
        found, exact = counted(values.tolist()), summarize(values.tolist())
        # Where both signs meet, the error is that of the larger of two neighbours.
        assert found.quantile(0.5) == pytest.approx(exact.median, rel=QUANTILE_ERROR, abs=1e-4)
        assert found.quantile(0.99) == pytest.approx(exact.p99, rel=QUANTILE_ERROR)
    assert QUANTILE_ERROR < 0.003


@given(st.lists(FLOATS, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_rank_is_within_the_stated_error(values: list[float]) -> None:
    found = counted(values)
    ordered = sorted(values)
    for rank, value in enumerate(ordered):
        share = rank / (len(values) - 1) if len(values) > 1 else 0.0
        limit = max(abs(ordered[rank]), abs(ordered[min(rank + 1, len(values) - 1)]))
        assert abs(found.quantile(share) - value) <= limit * (QUANTILE_ERROR + 1e-6)


@given(st.lists(FLOATS, max_size=40), st.integers(0, 40), st.randoms())
@settings(max_examples=60, deadline=None)
def test_neither_order_nor_grouping_matters(
    values: list[float], cut: int, shuffler: random.Random
) -> None:
    other = list(values)
    shuffler.shuffle(other)
    one, two = counted(values), counted(other[:cut], other[cut:])
    assert [repr(one.quantile(share)) for share in SHARES] == [
        repr(two.quantile(share)) for share in SHARES
    ]


def test_zeros_infinities_and_nan_have_their_ranks() -> None:
    found = counted([math.nan, 0.0, -math.inf, 5.0], [math.inf, -3.0, 0.0])
    ranked = [found.quantile(rank / 6) for rank in range(7)]
    assert ranked[:1] == [-math.inf]
    assert ranked[1] == pytest.approx(-3.0, rel=QUANTILE_ERROR)
    assert ranked[2:4] == [0.0, 0.0]
    assert ranked[4] == pytest.approx(5.0, rel=QUANTILE_ERROR)
    assert ranked[5] == math.inf
    assert math.isnan(ranked[6])
    assert math.isnan(Quantiles().quantile(0.5))


@pytest.mark.parametrize("value", [1e-45, 3.4e38, 1.7e308, 5e-324, -1e-45])
def test_a_value_alone_is_exact_however_small_or_large(value: float) -> None:
    assert counted([value] * 3).quantile(0.5) == value


def test_the_memory_does_not_grow_with_the_values() -> None:
    rng = np.random.default_rng(1)
    found = Quantiles()
    found.add(rng.lognormal(0, 2, 1000))
    before = len(found._above.counts)
    for _ in range(50):
        found.add(rng.lognormal(0, 2, 1000))
    assert len(found._above.counts) < 2 * before
