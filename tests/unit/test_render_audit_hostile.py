"""Text from outside is shown in every format, and is obeyed in none."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.audit_reports import HOSTILE, hostile
from normscope.cli.audit_formats import AuditFormat, audit_text
from normscope.render.inert import inert, inert_json, inert_xml
from normscope.render.page import PLAIN, Page

COMMANDS = {"error", "warning", "notice", "debug", "add-mask", "stop-commands", "group"}
TEXTS = {written: audit_text(hostile(), written, PLAIN) for written in AuditFormat}


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands and their properties that GitHub's runner takes from a step's output."""
    for line in text.splitlines():
        started = re.match(r"\s*::(?P<name>[^ :]+)(?: (?P<properties>.*?))?::", line)
        if started is not None and started["name"] in COMMANDS:
            yield started["name"], started["properties"] or ""
            continue
        inside = re.search(r"##\[(?P<name>[^ \]]+)(?P<properties>[^\]]*)\]", line)
        if inside is not None and inside["name"] in COMMANDS:
            yield inside["name"], inside["properties"]


def test_the_runner_here_takes_both_forms() -> None:
    text = "a ##[error]b\n  ::warning file=x::y\n ::nothing::\n x ::error::y"
    assert [name for name, _ in commands_of(text)] == ["error", "warning"]


@pytest.mark.parametrize("written", sorted(set(AuditFormat) - {AuditFormat.GITHUB}))
def test_no_format_holds_a_command_of_others(written: AuditFormat) -> None:
    assert list(commands_of(TEXTS[written])) == []


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_wrapped_line_begins_a_command(width: int) -> None:
    text = audit_text(hostile(), AuditFormat.TABLE, Page(width=width), explain=True)
    assert list(commands_of(text)) == []


def test_every_github_command_is_our_own() -> None:
    found = list(commands_of(TEXTS[AuditFormat.GITHUB]))
    assert [name for name, _ in found] == ["error", "error", "error"]
    for _, properties in found:
        keys = [pair.partition("=")[0] for pair in properties.split(",")]
        assert keys in (["title"], ["file", "line", "title"])
    assert len(TEXTS[AuditFormat.GITHUB].splitlines()) == 2 + len(found)


@pytest.mark.parametrize("written", [AuditFormat.JSON, AuditFormat.SARIF])
def test_a_document_is_ascii_and_valid(written: AuditFormat) -> None:
    assert TEXTS[written].isascii()
    assert isinstance(json.loads(TEXTS[written]), dict)


def test_json_gives_the_text_back() -> None:
    document = json.loads(TEXTS[AuditFormat.JSON])
    assert document["targets"][0]["target"] == HOSTILE
    assert document["targets"][0]["findings"][0]["message"] == HOSTILE


def test_each_line_of_jsonl_is_a_document() -> None:
    lines = TEXTS[AuditFormat.JSONL].splitlines()
    assert [json.loads(line)["schema"].partition("/")[0] for line in lines] == [
        "normscope.audited",
        "normscope.failure",
        "normscope.audit-summary",
    ]


def test_xml_is_well_formed_and_shows_the_text() -> None:
    root = ElementTree.fromstring(TEXTS[AuditFormat.JUNIT])
    message = root.find(".//failure").get("message")
    assert "]]> a|b" in message
    assert "<script>" in message
    assert "\\x00" in message
    assert "##[error]" in message


def test_markdown_reads_nothing_of_it() -> None:
    text = TEXTS[AuditFormat.MARKDOWN]
    outside_of_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script>" not in outside_of_code
    assert "@all" not in outside_of_code
    assert "#1" not in outside_of_code
    for rows in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("a ::error::x", r"a \x3a:error::x"),
        ("std::vector", "std::vector"),
        ("a##[error]x", r"a#\x23[error]x"),
        ("\u00a0::warning::x", "\u00a0\\x3a:warning::x"),
        ("\x1b[31m::x", "\\x1b[31m::x"),
    ],
)
def test_what_would_begin_a_command_is_escaped(text: str, shown: str) -> None:
    assert inert(text) == shown


@given(st.text(st.sampled_from("#:[] aerow\n\r\u2028\u00a0")))
def test_no_text_is_a_command_once_it_is_inert(text: str) -> None:
    for word in inert(text).split():
        assert not word.startswith("::")
        assert "##[" not in word


@given(st.text(st.sampled_from('#[]\\"<&')))
def test_inert_documents_hold_the_same_text(text: str) -> None:
    made = inert_json(json.dumps(text))
    assert json.loads(made) == text
    element = ElementTree.Element("a")
    element.text = text
    xml = inert_xml(ElementTree.tostring(element, encoding="unicode"))
    assert (ElementTree.fromstring(xml).text or "") == text
    assert "##[" not in made + xml
