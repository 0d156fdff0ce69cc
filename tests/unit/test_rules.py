"""The rules as a whole: their codes, their words, and which of them are meant by what is typed."""

import json

import pytest

from normscope.audit.rule import Need
from normscope.audit.rules import RULES, required_rule, rule_of, select_rules
from normscope.errors import UsageError
from normscope.render.page import PLAIN, Page
from normscope.render.rule_text import rule_in, rules_in

CODES = (
    *("NS101", "NS102", "NS103", "NS104", "NS105", "NS106", "NS107", "NS108"),
    *("NS201", "NS202", "NS203", "NS204"),
    *("NS301", "NS302", "NS303", "NS304", "NS305"),
    *("NS401", "NS402", "NS403", "NS404", "NS405", "NS406"),
    *("NS501", "NS502"),
)
"""Stable for ever: a code that is gone is never used again."""


def test_every_code_has_its_rule() -> None:
    assert tuple(rule.code for rule in RULES) == CODES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_says_what_why_and_how(rule) -> None:
    for sentence in (rule.what, rule.why, rule.mend):
        assert sentence[0].isupper() or sentence.startswith(("bfloat16", "transformers"))
        assert sentence.endswith(".")
    assert rule.title[0].islower() or rule.title.isupper()
    assert not rule.title.endswith(".")
    assert (rule.check is None) == (rule.needs is Need.LOCK)


@pytest.mark.parametrize(
    ("prefix", "needs"),
    [("NS1", {Need.STRUCTURE}), ("NS3", {Need.HEADERS, Need.VALUES}), ("NS4", {Need.STATISTICS})],
)
def test_the_hundreds_tell_what_a_rule_needs(prefix: str, needs: set[Need]) -> None:
    assert {rule.needs for rule in RULES if rule.code.startswith(prefix)} == needs


def test_only_the_rule_about_names_is_off() -> None:
    assert [rule.code for rule in RULES if not rule.usual] == ["NS104"]


# Which are meant.


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        (None, (), tuple(code for code in CODES if code != "NS104")),
        (("NS",), (), CODES),
        (("NS2", "NS104"), (), ("NS104", "NS201", "NS202", "NS203", "NS204")),
        (("NS2",), ("NS203", "NS204"), ("NS201", "NS202")),
        (None, ("NS1", "NS2", "NS3", "NS4"), ("NS501", "NS502")),
        ((), (), ()),
        (("ns2",), ("Ns203", "ns204"), ("NS201", "NS202")),
    ],
)
def test_codes_and_what_they_begin_with(select, ignore, codes) -> None:
    assert select_rules(select, ignore) == codes


@pytest.mark.parametrize(("select", "ignore"), [(("NS110",), ()), (None, ("NS9",)), (("",), ())])
def test_what_begins_no_code_is_refused(select, ignore) -> None:
    with pytest.raises(UsageError):
        select_rules(select, ignore)


def test_the_nearest_code_is_offered() -> None:
    with pytest.raises(UsageError, match="no rule 'NS110'") as refused:
        required_rule("NS110")
    assert "did you mean NS10" in refused.value.hint
    assert required_rule(" ns102 ").code == "NS102"
    assert rule_of("NS999") is None


@pytest.mark.parametrize("text", ["NS9", "ns6", "rule"])
def test_what_begins_no_code_is_told_what_codes_begin_with(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        select_rules((text,), ())
    assert refused.value.hint.startswith("codes begin with NS1, NS2, NS3, NS4, NS5; ")


# How they are told.


def test_the_list_fits_eighty_columns() -> None:
    text = rules_in("table", RULES, Page(width=80))
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) == len(RULES) + 1
    (line,) = (line for line in text.splitlines() if line.startswith("NS104"))
    assert line.split(maxsplit=3) == [
        "NS104",
        "note",
        "off",
        "name that says another thing than the dataflow",
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_one_rule_fits_eighty_columns_and_says_all(rule) -> None:
    text = rule_in("table", rule, Page(width=80))
    assert max(map(len, text.splitlines())) <= 80
    whole = " ".join(text.split())
    for sentence in (rule.title, rule.severity.value, rule.what, rule.why, rule.mend):
        assert sentence in whole


def test_one_rule_in_full() -> None:
    assert rule_in("table", required_rule("NS102"), Page(width=80)) == (
        "NS102  pre-norm stack without a final norm\n"
        "warning, on by default\n"
        "\n"
        "What it checks\n"
        "  Follows the stream behind the last block of each pre-norm or sandwich stack to\n"
        "  the norms that read it, pooled or not. A post-norm stack needs no final norm.\n"
        "\n"
        "Why it matters\n"
        "  The stream of a pre-norm stack grows with depth. Converters that dropped the\n"
        "  final norm broke every model but the post-norm ones.\n"
        "\n"
        "How to fix it\n"
        "  Check that the checkpoint's class and config are the ones it was trained with:\n"
        "  some models keep the final norm in the class with the head.\n"
        "\n"
        "What it needs\n"
        "  The config; no weights are read.\n"
    )


def test_documents_hold_every_rule() -> None:
    document = json.loads(rules_in("json", RULES, PLAIN))
    assert document["schema"] == "normscope.rules/1"
    assert [rule["code"] for rule in document["rules"]] == list(CODES)
    lines = rules_in("jsonl", RULES, PLAIN).splitlines()
    assert [json.loads(line) for line in lines] == document["rules"]
    assert json.loads(rule_in("json", RULES[3], PLAIN)) == document["rules"][3]
    assert document["rules"][3]["default"] is False


def test_markdown_keeps_code_and_escapes_the_rest() -> None:
    text = rule_in("markdown", required_rule("NS204"), PLAIN)
    assert text.startswith("### NS204: small gain w lost in 1 + w\n")
    assert "`normscope diff A B`" in rule_in("markdown", required_rule("NS304"), PLAIN)
    rows = rules_in("markdown", RULES, PLAIN).splitlines()
    assert len(rows) == len(RULES) + 2
