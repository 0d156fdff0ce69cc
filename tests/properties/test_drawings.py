"""Whatever a block is made of, its drawing holds together and leaves nothing out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from normscope.render.drawing import draw
from normscope.render.rungs import Rung

BOXES = st.lists(st.sampled_from(["LayerNorm", "mlp", "γ·", "f (1)"]), min_size=1, max_size=3).map(
    tuple
)
RUNGS = st.lists(
    st.builds(
        Rung,
        shared=st.just(()) | BOXES,
        branches=st.lists(BOXES, min_size=1, max_size=3).map(tuple),
        skip=st.just(()) | BOXES,
        sign=st.sampled_from("+-"),
        after=st.just(()) | BOXES,
    )
    | st.builds(
        Rung,
        shared=st.just(()),
        branches=BOXES.map(lambda boxes: (boxes,)),
        skip=st.none(),
        sign=st.just(""),
        after=st.just(()) | BOXES,
    ),
    min_size=1,
    max_size=6,
)


@given(RUNGS, st.integers(min_value=10, max_value=120))
def test_nothing_is_left_out_and_the_order_is_kept(rungs: list[Rung], width: int) -> None:
    lines = draw(rungs, width=width)
    boxes = [
        box
        for rung in rungs
        for part in (rung.skip or (), rung.shared, *rung.branches, rung.after)
        for box in part
    ]
    text = "\n".join(lines)
    for box in set(boxes):
        assert text.count(f" {box} ") == boxes.count(box)
    assert text.count("(+)") + text.count("(-)") == sum(rung.skip is not None for rung in rungs)
    assert text.count("▶") == sum(line.startswith("x") for line in lines)


@given(RUNGS, st.integers(min_value=60, max_value=120))
def test_only_a_single_rung_is_wider_than_asked(rungs: list[Rung], width: int) -> None:
    for line in draw(rungs, width=width):
        alone = line.count("(+)") + line.count("(-)") <= 1
        assert len(line) <= width or alone


@given(RUNGS, st.integers(min_value=10, max_value=120))
def test_every_corner_has_a_line_above_it(rungs: list[Rung], width: int) -> None:
    lines = draw(rungs, width=width)
    for above, line in pairwise(lines):
        for column, character in enumerate(line):
            if character in "└├":
                assert above[column] in "┬├", "\n".join(lines)
            if character in "┘┤" and line[column - 1] == "─":
                assert above[column] in "+-┤", "\n".join(lines)


@given(RUNGS, st.integers(min_value=10, max_value=120))
def test_in_ascii_the_drawing_is_the_same(rungs: list[Rung], width: int) -> None:
    drawn = "\n".join(draw(rungs, width=width, ascii_only=True))
    full = "\n".join(draw(rungs, width=10_000))
    assert drawn.isascii()
    for here, there in (("mlp", "mlp"), ("f (1)", "f (1)"), ("gamma*", "γ·"), ("(+)", "(+)")):
        assert drawn.count(here) == full.count(there)
