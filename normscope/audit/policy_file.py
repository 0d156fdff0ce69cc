"""Path of a TOML file -> Policy."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from normscope.audit.policy import Family, Measuring, Override, Policy, TargetPattern
from normscope.audit.policy_expect import EXPECT_KEYS, read_expect
from normscope.audit.policy_source import PolicySource, open_source
from normscope.audit.policy_table import PolicyTable, shown
from normscope.audit.rules import begins_a_code, nearest_rules, rule_of
from normscope.errors import UsageError
from normscope.statistics import DEFAULT_THRESHOLDS, Thresholds

POLICY_NAME = "normscope.toml"
PROJECT_NAME = "pyproject.toml"

_TOP_KEYS = ("family", "select", "ignore", "stats")
_OVERRIDE_KEYS = ("targets", "expect", "select", "ignore", "budget")
_FAMILY_KEYS = ("name", *_OVERRIDE_KEYS, "override")
_STATS_KEYS = ("input", "max_length", "verify", "thresholds")
_THRESHOLD_KEYS = tuple(item.name for item in fields(Thresholds))
_STANDARD_INPUT = "-"
_MEASURED = "NS4"
"""What the codes of rules that measure begin with."""

_TO_EXPECT = dict.fromkeys(EXPECT_KEYS, "[family.expect]")
_TO_FAMILY = {
    **dict.fromkeys(("name", "targets", "budget", "expect"), "[[family]]"),
    **dict.fromkeys(EXPECT_KEYS, "[family.expect]"),
    "override": "[[family.override]]",
    "input": "[stats]",
    "tool": "pyproject.toml: in a policy file of its own the keys stand at the top",
}
_TO_THRESHOLDS = dict.fromkeys(_THRESHOLD_KEYS, "[stats.thresholds]")


def find_policy(directory: Path) -> Path | None:
    """Return the policy of a folder: `normscope.toml`, else a pyproject.toml that holds one.

    Raises `UsageError` where there is a pyproject.toml and it cannot be read.
    """
    own = directory / POLICY_NAME
    if own.is_file():
        return own
    project = directory / PROJECT_NAME
    if project.is_file() and _in_project(open_source(project)) is not None:
        return project
    return None


def read_policy(path: Path) -> Policy:
    """Read a policy: a file of its own, or `[tool.normscope]` of a pyproject.toml.

    Raises `UsageError` that holds every mistake, each with its line and the nearest known word.
    """
    source = open_source(path)
    table = _top(source, in_project=path.name == PROJECT_NAME)
    policy = Policy(
        file=source.file,
        directory=path.parent,
        families=_families(table),
        select=_codes(table, "select"),
        ignore=_codes(table, "ignore") or (),
        measuring=_measuring(table),
    )
    source.raise_mistakes()
    return policy


def _top(source: PolicySource, *, in_project: bool) -> PolicyTable:
    if not in_project:
        return PolicyTable(
            source=source,
            path=(),
            title="a policy",
            values=source.document,
            keys=_TOP_KEYS,
            elsewhere=_TO_FAMILY,
        )
    found = _in_project(source)
    if found is None:
        raise UsageError(
            f"{source.file}: there is no [tool.normscope]",
            f"write the policy there, or into {POLICY_NAME}",
        )
    return found


def _in_project(source: PolicySource) -> PolicyTable | None:
    document = PolicyTable(source=source, path=(), title=PROJECT_NAME, values=source.document)
    tools = document.table("tool", "[tool]")
    if tools is None:
        return None
    return tools.table("normscope", "[tool.normscope]", _TOP_KEYS, _TO_FAMILY)


def _families(table: PolicyTable) -> tuple[Family, ...]:
    tables = table.tables("family", "[[family]]", _FAMILY_KEYS, _TO_EXPECT)
    found = tuple(_family(each) for each in tables)
    lines: dict[str, int] = {}
    for family, each in zip(found, tables, strict=True):
        if family.name in lines:
            hint = f"the first stands in line {lines[family.name]}"
            each.wrong("name", f"there are two families named {shown(family.name)}", hint)
        elif family.name:
            lines[family.name] = each.place("name").line
    return found


def _family(table: PolicyTable) -> Family:
    name = table.text("name")
    if not (name or "").strip() and (name is not None or "name" not in table.values):
        table.wrong("name", "a family has no name", 'write `name = "…"`: findings are told by it')
    overrides = table.tables("override", "[[family.override]]", _OVERRIDE_KEYS, _TO_EXPECT)
    return Family(
        name=name or "",
        place=table.source.place(table.path),
        targets=_targets(table, f"the family {shown(name)}" if name else "a family"),
        expect=read_expect(table, "family"),
        select=_codes(table, "select"),
        ignore=_codes(table, "ignore") or (),
        budget=_budget(table, "family"),
        overrides=tuple(_override(each) for each in overrides),
    )


def _override(table: PolicyTable) -> Override:
    return Override(
        targets=_targets(table, "an override"),
        expect=read_expect(table, "family.override"),
        select=_codes(table, "select"),
        ignore=_codes(table, "ignore") or (),
        budget=_budget(table, "family.override"),
    )


def _targets(table: PolicyTable, whose: str) -> tuple[TargetPattern, ...]:
    texts = table.texts("targets")
    if table.values.get("targets", []) == []:
        hint = 'write `targets = ["./checkpoints/*"]`'
        table.wrong("targets", f"{whose} has no targets", hint)
    patterns = []
    for number, text in enumerate(texts or ()):
        if "\0" in text:
            table.wrong("targets", "a target has a NUL character", element=number)
        if text.strip() == _STANDARD_INPUT:
            message = f"{shown(text)} is standard input, which a policy does not read"
            hint = "name the targets here, or type `-` behind `normscope audit`"
            table.wrong("targets", message, hint, element=number)
        patterns.append(TargetPattern(text=text, place=table.place("targets", number)))
    return tuple(patterns)


def _codes(table: PolicyTable, key: str) -> tuple[str, ...] | None:
    """Return codes of rules, or what they begin with."""
    codes = table.texts(key)
    for number, code in enumerate(codes or ()):
        if code and not begins_a_code(code):
            message = f"{shown(code)} is no rule, and no rule begins with it"
            table.wrong(key, message, nearest_rules(code), element=number)
    return None if codes is None else tuple(code.upper() for code in codes)


def _budget(owner: PolicyTable, title: str) -> Mapping[str, int]:
    table = owner.table("budget", f"[{title}.budget]")
    if table is None:
        return {}
    found = {}
    for code in table.values:
        count = table.count(code)
        if rule_of(code.upper()) is None:
            table.wrong(code, f"{shown(code)} is no rule", nearest_rules(code))
        elif not code.upper().startswith(_MEASURED):
            message = f"{code} has no budget: only the rules that measure (NS4xx) have one"
            table.wrong(code, message, f"ignore {code}, or expect what is meant")
        elif count is not None:
            found[code.upper()] = count
    return found


def _measuring(top: PolicyTable) -> Measuring | None:
    table = top.table("stats", "[stats]", _STATS_KEYS, _TO_THRESHOLDS)
    if table is None:
        return None
    single = isinstance(table.values.get("input"), str)
    texts = (table.text("input") or "",) if single else table.texts("input")
    if texts == () or texts == ("",) or "input" not in table.values:
        hint = 'write `input = "some text of your domain"`, or a list of texts'
        table.wrong("input", "[stats] has no input to measure on", hint)
    return Measuring(
        input=texts or (),
        max_length=table.count("max_length", least=1),
        verify=table.flag("verify") or False,
        thresholds=_thresholds(table),
    )


def _thresholds(stats: PolicyTable) -> Thresholds:
    table = stats.table("thresholds", "[stats.thresholds]", _THRESHOLD_KEYS)
    if table is None:
        return DEFAULT_THRESHOLDS
    usual = DEFAULT_THRESHOLDS
    found = {key: table.number(key) for key in _THRESHOLD_KEYS if key != "massive_channels"}
    numbers = {key: value for key, value in found.items() if value is not None}
    channels = table.count("massive_channels", least=1)
    return Thresholds(
        massive=numbers.get("massive", usual.massive),
        massive_share=numbers.get("massive_share", usual.massive_share),
        massive_channels=usual.massive_channels if channels is None else channels,
        sink=numbers.get("sink", usual.sink),
        eps_share=numbers.get("eps_share", usual.eps_share),
        error=numbers.get("error", usual.error),
    )
