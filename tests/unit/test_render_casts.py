"""Where a run in half precision casts back is said once, or of each norm where they differ."""

from dataclasses import replace

import pytest

from golden.inspections import gemma2, llama
from normscope.inspection import Inspection
from normscope.render.explain import render_explanation
from normscope.render.norms import render_norms
from normscope.render.page import Page

PAGE = Page(width=80)


def cast(made: Inspection | None = None, **casts: str | None) -> Inspection:
    """Return a made model whose norms cast as told, by the last part of their names."""
    made = made or llama()
    return replace(
        made,
        norms=tuple(
            replace(norm, cast=casts.get(norm.name.rpartition(".")[2])) for norm in made.norms
        ),
    )


@pytest.mark.parametrize("told", ["before gain", "after gain"])
def test_the_norm_table_says_once_what_all_norms_do(told: str) -> None:
    every = cast(input_layernorm=told, post_attention_layernorm=told, norm=told)
    lines = render_norms(every, PAGE).splitlines()
    assert (
        " ".join(lines[:2])
        .partition(" equal norms")[0]
        .endswith(f"dtype float32, in half precision cast {told}")
    )
    assert max(map(len, lines)) <= 80


def test_a_norm_without_a_gain_does_not_part_the_others() -> None:
    some = cast(input_layernorm="after gain", norm="after gain")
    assert "in half precision cast after gain" in " ".join(render_norms(some, PAGE).split())
    none = cast()
    assert "half" not in render_norms(none, PAGE)


def test_the_norm_table_has_a_column_where_norms_differ() -> None:
    mixed = cast(input_layernorm="before gain", post_attention_layernorm="no cast", norm=None)
    lines = render_norms(mixed, PAGE).splitlines()
    assert "half" not in lines[0]
    header = next(line for line in lines if line.split()[-1:] == ["folds"])
    assert "in half precision" in header
    assert any("cast before gain" in line for line in lines)
    assert any("no cast" in line for line in lines)
    assert max(map(len, lines)) <= 80


def explained(made: Inspection) -> list[str]:
    lines = render_explanation(made, made.blocks[0], PAGE).splitlines()
    return [line.strip() for line in lines if "half" in line]


def test_an_explanation_tells_where_the_branchs_norms_cast() -> None:
    mixed = cast(input_layernorm="before gain", post_attention_layernorm="after gain")
    assert explained(mixed) == [
        "in half precision cast before gain",
        "in half precision cast after gain",
    ]
    assert explained(cast()) == []


def test_an_explanation_tells_norms_of_one_branch_apart() -> None:
    both = cast(gemma2(), input_layernorm="before gain", post_attention_layernorm="after gain")
    assert explained(both) == [
        "in half precision cast before gain (input_layernorm), cast after gain",
    ]
