import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.render.figures import all_of, counted, human_count, index_ranges, one_of


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1K"),
        (65_800, "65.8K"),
        (999_499, "999K"),
        (999_999, "1M"),
        (109_482_240, "109M"),
        (6_607_343_616, "6.61B"),
        (670_531_153_920, "671B"),
        (1_040_000_000_000, "1.04T"),
    ],
)
def test_counts_have_three_digits(count: int, text: str) -> None:
    assert human_count(count) == text


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ([], ""),
        ([4], "4"),
        ([0, 1], "0-1"),
        ([0, 2, 3, 4], "0, 2-4"),
        ([5, 3, 4, 3, 0], "0, 3-5"),
    ],
)
def test_indices_are_told_as_ranges(indices: list[int], text: str) -> None:
    assert index_ranges(indices) == text


@given(st.sets(st.integers(0, 200)))
def test_ranges_name_every_index_and_no_other(indices: set[int]) -> None:
    named: set[int] = set()
    for piece in filter(None, index_ranges(indices).split(", ")):
        first, _, last = piece.partition("-")
        named.update(range(int(first), int(last or first) + 1))
    assert named == indices


def test_lists_read_as_speech() -> None:
    assert one_of(["a"]) == "a"
    assert one_of(["a", "b", "c"]) == "a, b or c"
    assert all_of(["a", "b"]) == "a and b"
    assert all_of([]) == ""


def test_one_thing_is_singular() -> None:
    assert (counted(1, "block"), counted(2, "block")) == ("1 block", "2 blocks")
