"""Which axis of a norm's rows counts what, from sizes alone and from two runs."""

import pytest

from normscope.activations.layouts import Extent, Factor, find_layout

B, S, R = Factor.BATCH, Factor.SEQUENCE, Factor.ROWS

Run = tuple[tuple[int, ...], int, int]


def layouts(*runs: Run) -> list[tuple[tuple[Factor, ...], ...]]:
    observed = [(shape, Extent(batch=batch, length=length)) for shape, batch, length in runs]
    return [layout.axes for layout in find_layout(observed)]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (((2, 5), 2, 5), ((B,), (S,))),
        (((10,), 2, 5), ((B, S),)),
        (((5, 2), 2, 5), ((S,), (B,))),
        (((2, 4, 5), 2, 5), ((B,), (R,), (S,))),
        (((2, 5, 4), 2, 5), ((B,), (S,), (R,))),
        (((8, 5), 2, 5), ((B, R), (S,))),
        (((1, 12), 1, 12), ((B,), (S,))),
        (((1, 1), 1, 1), ((B,), (S,))),
    ],
)
def test_sizes_that_differ_leave_one_reading(
    run: Run, expected: tuple[tuple[Factor, ...], ...]
) -> None:
    assert layouts(run) == [expected]


@pytest.mark.parametrize("run", [((4, 197), 1, 6), ((2,), 2, 5), ((3, 7), 2, 5)])
def test_rows_that_are_no_tokens_have_no_layout(run: Run) -> None:
    assert layouts(run) == []


def test_as_many_heads_as_tokens_are_told_apart_by_a_second_run() -> None:
    first = ((2, 5, 5), 2, 5)
    assert layouts(first) == [((B,), (S,), (R,)), ((B,), (R,), (S,))]
    assert layouts(first, ((3, 5, 7), 3, 7)) == [((B,), (R,), (S,))]
    assert layouts(first, ((3, 7, 5), 3, 7)) == [((B,), (S,), (R,))]


def test_a_coincidence_does_not_survive_a_second_run() -> None:
    latents = ((1, 64), 1, 8)
    assert layouts(latents) != []
    assert layouts(latents, ((2, 64), 2, 5)) == []


def test_rows_are_put_in_the_order_of_their_tokens() -> None:
    (layout,) = find_layout([((2, 4, 5), Extent(batch=2, length=5))])
    extent = Extent(batch=3, length=7)
    assert layout.sizes((3, 4, 7), extent) == (3, 4, 7)
    assert layout.order() == (0, 2, 1)
    assert layout.rows_per_token((3, 4, 7), extent) == 4
    assert layout.sizes((3, 4, 8), extent) is None
