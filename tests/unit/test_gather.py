"""A run that is too large to hold: its summary says what the rows would have said."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normscope.activations.chunks import Chunk, Columns, NormRows, Reporting
from normscope.activations.findings import find_in_statistics
from normscope.activations.gather import Gathered
from normscope.activations.quantiles import QUANTILE_ERROR
from normscope.activations.subject import Subject
from normscope.errors import UsageError
from normscope.inspection import ModelFacts, Role
from normscope.statistics import (
    InputFacts,
    NormStatistics,
    Quantity,
    Statistics,
    Token,
)

FACTS = ModelFacts(class_name="M", model_type=None, revision=None, parameters=1, dtype="float32")
SUBJECT = Subject(target="m", versions={}, model=FACTS)
COUNT = 600


def norm(name: str, rows_per_token: int | None = 1) -> NormStatistics:
    return NormStatistics(
        name=name,
        call=0,
        role=Role.BRANCH_INPUT,
        kind="LayerNorm",
        block=f"h.{name}",
        eps=1e-5,
        eps_position="inside",
        rows_per_token=rows_per_token,
        rows=None if rows_per_token else "groups",
    )


NORMS = (norm("a"), norm("b"), norm("c", None))


def columns(seed: int, *, massive: Sequence[int] = (), wrong: Sequence[int] = ()) -> Columns:
    rng = np.random.default_rng(seed)
    variance = rng.lognormal(0, 0.3, COUNT)
    peak = 4 * np.sqrt(variance)
    channel = rng.integers(0, 40, COUNT)
    for place in massive:
        variance[place], peak[place], channel[place] = 9e5 - place, 22600.0 + place, 7
    variance[list(wrong[:1])] = math.nan
    peak[list(wrong)] = math.inf
    peak[list(wrong[:1])] = math.nan  # greater than infinity, and not the first
    return Columns(mean=rng.normal(0, 1, COUNT), variance=variance, peak=peak, channel=channel)


TOKENS = tuple(
    Token(sequence=n // 20, position=n % 20, id=n % 17, text=f"t{n % 17}", special=False)
    for n in range(COUNT)
)
ROWS = (
    (columns(0, massive=(17, 51, 500)), columns(1)),
    (columns(2, massive=(51, 60)), columns(3, wrong=(444, 333))),
    (columns(4), columns(5)),
)


def run(cuts: Sequence[int], *, most_rows: int) -> Statistics:
    """Return the statistics of all rows, given in chunks."""
    gathered = Gathered(Reporting(most_rows=most_rows))
    ends = [*sorted(set(cuts)), COUNT]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        places = np.arange(start, end)
        gathered.add(
            Chunk(
                subject=SUBJECT,
                norms=NORMS,
                rows=tuple(
                    NormRows(before=before.taken(places), after=after.taken(places))
                    for before, after in ROWS
                ),
                tokens=TOKENS[start:end],
            )
        )
    found = Statistics(
        target="m",
        versions={},
        model=FACTS,
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=30, tokens=COUNT, padding=0, special=0),
        tokens=gathered.tokens(),
        norms=gathered.as_statistics(NORMS, [(0.5, None), (2.0, None), (None, None)], [None] * 3),
        left_out=gathered.left_out(),
    )
    return replace(found, findings=find_in_statistics(found))


WHOLE = run((), most_rows=10**9)


@given(st.lists(st.integers(1, COUNT - 1), max_size=12))
@settings(max_examples=25, deadline=None)
def test_how_the_rows_are_cut_into_chunks_does_not_matter(cuts: list[int]) -> None:
    one, other = run((), most_rows=0), run(cuts, most_rows=0)
    assert [norm.kept for norm in one.norms] == [norm.kept for norm in other.norms]
    assert one.findings == other.findings
    for left, right in zip(one.norms, other.norms, strict=True):
        for point in ("before", "after"):
            ours, theirs = getattr(left, point), getattr(right, point)
            assert repr([ours.summary(q) for q in Quantity]) == repr(
                [theirs.summary(q) for q in Quantity]
            )
            assert ours.pooled().variance == pytest.approx(
                theirs.pooled().variance, rel=1e-12, nan_ok=True
            )
    assert repr(run(cuts, most_rows=10**9).norms) == repr(WHOLE.norms)


def test_the_summary_says_what_the_rows_would_have_said() -> None:
    short = run((100, 350), most_rows=1000)
    assert short.left_out is not None
    assert short.tokens == ()
    assert WHOLE.left_out is None
    for held, kept in zip(WHOLE.norms, short.norms, strict=True):
        for point in ("before", "after"):
            rows, few = getattr(held, point), getattr(kept, point)
            assert len(few.mean) < len(rows.mean) / 4
            for quantity in Quantity:
                exact, found = rows.summary(quantity), few.summary(quantity)
                assert found.maximum == pytest.approx(exact.maximum, nan_ok=True)
                assert kept.kept.places[found.at_token] == exact.at_token
                if quantity is not Quantity.MEAN:  # a median near zero has no relative error
                    assert found.median == pytest.approx(exact.median, rel=QUANTILE_ERROR)
                    assert found.p99 == pytest.approx(exact.p99, rel=2 * QUANTILE_ERROR)
            pooled = few.pooled()
            assert pooled.count == COUNT
            assert pooled.mean == pytest.approx(rows.pooled().mean)
            assert pooled.variance == pytest.approx(rows.pooled().variance, nan_ok=True)


def test_findings_of_the_summary_name_the_same_tokens() -> None:
    short = run((100, 350), most_rows=1000)
    codes = [(item.code, item.where) for item in WHOLE.findings]
    assert {code for code, _ in codes} >= {"NS401", "NS402", "NS406"}
    assert [(item.code, item.where) for item in short.findings] == codes
    said = {item.code: item.message for item in short.findings}
    whole = {item.code: item.message for item in WHOLE.findings}
    assert said["NS406"] == whole["NS406"]
    assert 'token 13 "t10" of sequence 16' in whole["NS406"]
    assert said["NS401"].replace("at least ", "") == whole["NS401"]


def test_rows_that_are_no_tokens_keep_their_numbers() -> None:
    short = run((100, 350), most_rows=0)
    kept = short.norms[2].kept
    assert kept is not None
    assert kept.tokens == ()
    found = short.norms[2].before.summary()
    assert kept.places[found.at_token] == int(ROWS[2][0].variance.argmax())


def test_where_every_token_is_needed_a_large_run_is_refused() -> None:
    gathered = Gathered(Reporting(most_rows=10, every_token=True))
    rows = tuple(NormRows(before=before, after=after) for before, after in ROWS)
    with pytest.raises(UsageError, match="over 10 rows"):
        gathered.add(Chunk(subject=SUBJECT, norms=NORMS, rows=rows, tokens=TOKENS))
