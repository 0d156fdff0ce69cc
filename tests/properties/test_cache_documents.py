"""What the cache writes is read back as it was, and nothing else is taken for it."""

import json
from dataclasses import fields, replace
from math import isnan
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from golden.inspections import EVERY
from normscope.cache.documents import plain, restored
from normscope.inspection import BlockReport, Evidence, Inspection, NormReport

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


Value = TypeVar("Value")


def copied(value: Value) -> Value:
    return restored(type(value), json.loads(json.dumps(plain(value))))


@QUICK
@given(st.from_type(BlockReport) | st.from_type(NormReport) | st.from_type(Inspection))
def test_nothing_is_lost(value: object) -> None:
    assume("nan" not in repr(value))  # equals nothing, not even itself
    assert copied(value) == value


def test_no_number_is_lost() -> None:
    norm = EVERY["bert"].norms[0]
    odd = (float("inf"), float("-inf"), 5e-324, 0.1, 0.0, None)
    assert [copied(replace(norm, eps=eps)).eps for eps in odd] == list(odd)
    assert isnan(copied(replace(norm, eps=float("nan"))).eps)


@pytest.mark.parametrize("name", EVERY)
def test_a_whole_inspection_comes_back_equal(name: str) -> None:
    assert copied(EVERY[name]) == EVERY[name]


EVIDENCE = Evidence(step="add", operation="add [2×8]", module="layers.0", source="m.py:1 f")


@pytest.mark.parametrize("name", [field.name for field in fields(Evidence)])
def test_a_field_that_is_missing_or_of_another_type_is_refused(name: str) -> None:
    whole = plain(EVIDENCE)
    with pytest.raises(TypeError):
        restored(Evidence, {**whole, name: 3})
    del whole[name]
    with pytest.raises(KeyError):
        restored(Evidence, whole)


def test_a_word_that_no_enumeration_has_is_refused() -> None:
    whole = plain(EVERY["bert"])
    with pytest.raises(ValueError, match="middle-norm"):
        restored(Inspection, {**whole, "placement": "middle-norm"})
