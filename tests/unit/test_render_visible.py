import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.render.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("layers.0.norm", "layers.0.norm"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\0", "a\\x0ab\\x09c\\x00"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("x + 0.5·f(N(x))", "x + 0.5·f(N(x))"),
    ],
)
def test_what_would_not_be_seen_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_what_comes_out_can_be_printed(text: str) -> None:
    spaces = str.maketrans("", "", "".join(filter(str.isspace, text)))
    assert visible(text).translate(spaces).isprintable()


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"])))
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text
