from hypothesis import given
from hypothesis import strategies as st

from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.page import PLAIN, Page, to_text


def entry(lead: str, *details: str) -> Entry:
    return Entry(lead=(Cell(lead),), details=tuple((Cell(d), Cell("end")) for d in details))


def text(entries: list[Entry], width: int | None) -> str:
    return to_text(laid_out(entries, width=width, indent=1), PLAIN)


ENTRIES = [entry("short", "one", "three"), entry("a-longer-lead", "two")]


def test_details_stand_beside_their_lead_where_there_is_room() -> None:
    assert text(ENTRIES, 40) == (
        " short           one     end\n                 three   end\n a-longer-lead   two     end\n"
    )


def test_gaps_close_before_anything_moves() -> None:
    assert text(ENTRIES, 26) == (
        " short          one    end\n                three  end\n a-longer-lead  two    end\n"
    )


def test_details_stand_below_where_there_is_none() -> None:
    assert text(ENTRIES, 20) == (
        " short\n   one    end\n   three  end\n a-longer-lead\n   two    end\n"
    )


def test_a_column_without_text_is_left_out() -> None:
    empty = [Entry(lead=(Cell("a"), Cell("")), details=((Cell(""), Cell("b")),))]
    assert text(empty, 40) == " a   b\n"


def test_the_last_column_wraps_at_words() -> None:
    words = [
        Entry(lead=(Cell("a"),), details=((Cell("one two three four five six seven eight"),),))
    ]
    assert text(words, 40) == " a   one two three four five six seven\n     eight\n"


def test_a_lead_without_details_leaves_no_blank_line_below() -> None:
    alone = Entry(lead=(Cell("a" * 18),), details=((Cell(""),),))
    other = Entry(lead=(Cell("b"),), details=((Cell("detail"),),))
    assert text([alone, other], 8) == f" {'a' * 18}\n b\n   detail\n"


def test_a_sentence_hangs() -> None:
    lines = paragraph("(1) one two three", width=14, indent=1, hang=4)
    assert to_text(lines, PLAIN) == " (1) one\n     two three\n"


def test_without_an_edge_nothing_wraps() -> None:
    assert len(paragraph("word " * 100, width=None)) == 1


names = st.lists(st.text("abc.", min_size=1, max_size=60), min_size=1, max_size=5)


@given(names, names, st.one_of(st.none(), st.integers(10, 120)))
def test_no_name_is_ever_cut(leads: list[str], details: list[str], width: int | None) -> None:
    shown = text([entry(lead, *details) for lead in leads], width).split()
    assert set(leads) | set(details) <= set(shown)


def test_colour_is_only_for_a_terminal_that_has_it() -> None:
    lines = laid_out([Entry(lead=(Cell("x", "bold red"),))], width=80)
    assert to_text(lines, Page(width=80)) == "x\n"
    assert to_text(lines, Page(width=80, color=True)) == "\x1b[1;31mx\x1b[0m\n"
