"""Text from outside is shown in every view of inspect, stats and diff, and is obeyed in none."""

import json
import re
import unicodedata
import warnings
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from rich.text import Text

from normscope.cli.inspect_views import Views, text_of
from normscope.cli.options import Format
from normscope.cli.output import say
from normscope.cli.stats_views import View, text_of_statistics
from normscope.errors import FailureKind
from normscope.inspection import Uninspectable
from normscope.render.comparison import render_comparison
from normscope.render.comparison_documents import (
    render_comparison_json,
    render_comparison_markdown,
)
from normscope.render.documents import render_json, render_json_line
from normscope.render.inert import inert_line
from normscope.render.page import PLAIN, Page, to_text
from normscope.render.statistics_documents import render_statistics_json
from normscope.render.statistics_plot import plot_statistics
from normscope.render.visible import visible
from specimens.hostile import (
    HOSTILE,
    LONG,
    hostile_comparison,
    hostile_inspection,
    hostile_statistics,
)

EVERYTHING = Views(blocks=True, norms=True, diagram=True, gains=True, verbose=True)
EXPLAINED = Views(explain=f"{HOSTILE}.0")
FAILURE = Uninspectable(target=HOSTILE, kind=FailureKind.CORRUPT, message=HOSTILE, hint=HOSTILE)


def of_inspections(written: Format, page: Page) -> str:
    made = hostile_inspection()
    return text_of([made], written, EVERYTHING, page) + text_of([made], written, EXPLAINED, page)


def of_several(written: Format, page: Page) -> str:
    return text_of([hostile_inspection(), FAILURE], written, EVERYTHING, page)


def of_statistics(written: Format, page: Page) -> str:
    made = hostile_statistics()
    views = View if written is Format.TABLE else (View.SUMMARY,)
    one = "".join(text_of_statistics([made], written, view, page) for view in views)
    return one + text_of_statistics([made, made], written, View.SUMMARY, page)


def of_comparison(written: Format, page: Page) -> str:
    made = hostile_comparison()
    table = written is Format.TABLE
    return render_comparison(made, page) if table else render_comparison_markdown(made)


VIEWS = [of_inspections, of_several, of_statistics, of_comparison]


def is_harmless(text: str) -> bool:
    lines = text.split("\n")
    controls = {c for line in lines for c in line if unicodedata.category(c) in {"Cc", "Cf", "Cs"}}
    commands = [line for line in lines if re.match(r"\s*::|.*##\w*\[", line)]
    return not controls and not commands


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [None, 20, 80])
def test_a_table_steers_nothing(view: Callable[..., str], width: int | None) -> None:
    text = view(Format.TABLE, Page(width=width))
    assert r"\x1b[2J" in text
    assert is_harmless(text)


@pytest.mark.parametrize("view", VIEWS)
def test_a_coloured_table_has_our_own_escapes_only(view: Callable[..., str]) -> None:
    text = view(Format.TABLE, Page(width=80, color=True))
    assert is_harmless(re.sub(r"\x1b\[[0-9;]*m", "", text))


@pytest.mark.parametrize("view", VIEWS)
def test_markdown_reads_nothing_of_it(view: Callable[..., str]) -> None:
    text = view(Format.MARKDOWN, PLAIN)
    assert is_harmless(text)
    fenced = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", fenced)
    assert not re.search(r"<script>|(?<!\\)\[t\]|@all|#1\b|\*\*bold", outside)
    for rows in re.findall(r"(?:^\|.*\n)+", fenced, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1


@pytest.mark.parametrize(
    "text",
    [
        render_json(hostile_inspection()),
        render_json_line(FAILURE),
        render_statistics_json(hostile_statistics()),
        render_comparison_json(hostile_comparison()),
    ],
)
def test_json_is_ascii_and_gives_the_text_back(text: str) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    assert text.isascii()
    assert is_harmless(text)
    assert HOSTILE in texts_of(json.loads(text, parse_constant=refuse))


def texts_of(value: object) -> str:
    """Return every text of a document, as it is."""
    if isinstance(value, dict):
        return "".join(map(texts_of, value.values()))
    if isinstance(value, list):
        return "".join(map(texts_of, value))
    return str(value)


def test_a_page_can_run_no_script() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = plot_statistics([hostile_statistics()], "html").decode()
    svg = page[page.index("<svg") : page.rindex("</svg>") + len("</svg>")]
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert "script" not in tags
    assert page.count("<script") == 0
    assert page.count("</svg>") == 1


def test_what_our_own_words_would_complete_is_seen_by_the_line() -> None:
    assert to_text([Text("##").append("["), Text("  ").append("::error::x")], PLAIN) == (
        "#\\x23[\n  \\x3a:error::x\n"
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::add-mask::x", r"\x3a:add-mask::x"),
        ("\t ::x", r"\x09 ::x"),
        ("\u3000::x", "\u3000\\x3a:x"),
        ('0 "::"', '0 "::"'),
        ("  std::vector", "  std::vector"),
        ("##teamcity[x]", r"#\x23teamcity[x]"),
        ("### heading [x]", "### heading [x]"),
    ],
)
def test_a_line_loses_what_a_runner_would_take(line: str, shown: str) -> None:
    assert inert_line(line) == shown


def test_a_line_of_stderr_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    say("::error::x\n  ::stop-commands::y\nerror: \x1b[2J##[group]z")
    assert capsys.readouterr().err.split("\n") == [
        r"\x3a:error::x", r"  \x3a:stop-commands::y", r"error: \x1b[2J#\x23[group]z", ""
    ]  # fmt: skip


class TestLongNames:
    def test_the_beginning_is_shown(self) -> None:
        assert visible(LONG) == f"{'x' * 10_000}… (1,000,000 characters)"

    def test_a_token_of_a_million_characters_fills_no_table(self) -> None:
        made = hostile_statistics(("the", LONG, "norm", LONG, "a"))
        text = "".join(text_of_statistics([made], Format.TABLE, view, PLAIN) for view in View)
        assert len(text) < 20_000
        assert "… (1,000,000 characters)" in text

    def test_a_name_of_a_million_characters_fills_no_page(self) -> None:
        for width in (None, 80):
            text = text_of([hostile_inspection(LONG)], Format.TABLE, EVERYTHING, Page(width=width))
            assert len(text) < 1_000_000

    def test_json_keeps_it_whole(self) -> None:
        made = json.loads(render_json(hostile_inspection(LONG)))
        assert made["target"] == LONG
