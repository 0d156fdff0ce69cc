import re
from dataclasses import replace

import pytest

from golden.cases import FAILURE, golden_texts
from golden.inspections import llama
from normscope.render.markdown import code, escaped, render_markdown, render_markdown_overview

DOCUMENTS = {name: text for name, text in golden_texts() if name.endswith(".md")}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_table_row_has_as_many_cells_as_its_header(name: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", DOCUMENTS[name], flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


@pytest.mark.parametrize(
    ("text", "span"),
    [("a.b", "`a.b`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", r"`a\|b`"), ("", "")],
)
def test_nothing_ends_a_code_span_early(text: str, span: str) -> None:
    assert code(text) == span


def test_markdown_and_html_of_others_are_shown_not_read() -> None:
    assert escaped("<b>*x*_y_[z](u)|`") == r"\<b\>\*x\*\_y\_\[z\](u)\|\`"


def test_a_warning_cannot_inject_html() -> None:
    text = render_markdown(replace(llama(depth=1), warnings=("<script>alert(1)</script>",)))
    assert "<script>" not in text
    assert r"\<script\>" in text


def test_failures_are_rows_with_their_reason_below() -> None:
    text = render_markdown_overview([llama(), FAILURE])
    assert r"| `./broken` | not inspected | no\_config |" in text
    assert "- `./broken`: there is no config.json in this directory" in text
