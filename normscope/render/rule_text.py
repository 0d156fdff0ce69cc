"""Rules -> what they check, why it matters and how to mend it, in three formats."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from normscope.audit.rule import Need, Rule
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.markdown import code, escaped, joined, table
from normscope.render.page import Page, to_text
from normscope.render.plain import Json, dumped
from normscope.render.styles import PATH, QUIET, TITLE

RULES_SCHEMA = "normscope.rules/1"

_NEEDS = {
    Need.STRUCTURE: "The config; no weights are read",
    Need.HEADERS: "The headers of the weights",
    Need.VALUES: "The values of the norms' parameters",
    Need.STATISTICS: "A run of `stats`: `[stats] input = [...]` in the policy, and the weights",
    Need.LOCK: "A lock file: `--lock FILE`",
}


def rules_in(written: str, rules: Sequence[Rule], page: Page) -> str:
    """Return all rules in one of the formats `table`, `json`, `jsonl` and `markdown`."""
    if written == "jsonl":
        return "".join(map(_json_line, rules))
    if written == "json":
        return render_rules_json(rules)
    return render_rules_markdown(rules) if written == "markdown" else render_rules(rules, page)


def rule_in(written: str, rule: Rule, page: Page) -> str:
    """Return one rule in one of these formats."""
    if written == "jsonl":
        return _json_line(rule)
    if written == "json":
        return f"{dumped(_document(rule), indent=2)}\n"
    return render_rule_markdown(rule) if written == "markdown" else render_rule(rule, page)


def render_rules(rules: Sequence[Rule], page: Page) -> str:
    """Return all rules, a line each."""
    header = Entry(
        lead=(Cell("code", QUIET),),
        details=((Cell("severity", QUIET), Cell("default", QUIET), Cell("finds", QUIET)),),
    )
    entries = [
        Entry(
            lead=(Cell(rule.code, PATH),),
            details=((Cell(rule.severity.value), Cell(_default(rule)), Cell(rule.title)),),
        )
        for rule in rules
    ]
    return to_text(laid_out(entries, width=page.width, header=header), page)


def render_rule(rule: Rule, page: Page) -> str:
    """Return one rule in sentences."""
    return to_text(_lines(rule, page.width), page)


def _lines(rule: Rule, width: int | None) -> Iterator[Text]:
    yield Text.assemble((rule.code, TITLE), f"  {rule.title}")
    yield Text(f"{rule.severity.value}, {_selected(rule)}", style=QUIET)
    for heading, text in _parts(rule):
        yield Text("")
        yield Text(heading, style=TITLE)
        yield from paragraph(text, width=width, indent=2)


def render_rules_markdown(rules: Sequence[Rule]) -> str:
    """Return all rules as one table."""
    rows = [(rule.code, rule.severity.value, _default(rule), escaped(rule.title)) for rule in rules]
    return joined((table(("code", "severity", "default", "finds"), rows),))


def render_rule_markdown(rule: Rule) -> str:
    """Return one rule as a section."""
    return joined(
        (
            f"### {rule.code}: {escaped(rule.title)}",
            f"{rule.severity.value}, {_selected(rule)}",
            *(f"**{heading}**: {_with_code(text)}" for heading, text in _parts(rule)),
        )
    )


def render_rules_json(rules: Sequence[Rule]) -> str:
    """Return the rules as one document."""
    document: Json = {"schema": RULES_SCHEMA, "rules": [_document(rule) for rule in rules]}
    return f"{dumped(document, indent=2)}\n"


def _json_line(rule: Rule) -> str:
    return f"{dumped(_document(rule), indent=None)}\n"


def _document(rule: Rule) -> Json:
    return {
        "code": rule.code,
        "title": rule.title,
        "severity": rule.severity.value,
        "default": rule.usual,
        "needs": rule.needs.value,
        "checks": rule.what,
        "why": rule.why,
        "fix": rule.mend,
    }


def _parts(rule: Rule) -> Iterator[tuple[str, str]]:
    yield "What it checks", rule.what
    yield "Why it matters", rule.why
    yield "How to fix it", rule.mend
    yield "What it needs", f"{_NEEDS[rule.needs]}."


def _default(rule: Rule) -> str:
    return "on" if rule.usual else "off"


def _selected(rule: Rule) -> str:
    return "on by default" if rule.usual else "off unless it is selected"


def _with_code(text: str) -> str:
    """Return a sentence whose `code` stays code in markdown."""
    pieces = text.split("`")
    return "".join(
        code(piece) if number % 2 else escaped(piece) for number, piece in enumerate(pieces)
    )
