"""AuditReport -> the view for people: a summary first, then what the targets share."""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from normscope.audit.findings import Severity
from normscope.audit.groups import (
    FailureGroup,
    FindingGroup,
    grouped_failures,
    grouped_findings,
    grouped_unchecked,
)
from normscope.audit.report import AuditedTarget, AuditReport, GoneFinding
from normscope.audit.rules import rule_of
from normscope.audit.tally import RuleTally, Tally, tally_of
from normscope.render.audit_words import (
    INTERRUPTED,
    findings_text,
    rest_texts,
    rule_title,
    target_texts,
    targets_text,
    unchecked_text,
    where_texts,
)
from normscope.render.figures import counted
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.inert import inert
from normscope.render.page import Page, to_text
from normscope.render.styles import NOTE, PATH, QUIET, TITLE

_INDENT = 2
_MOST_ON_A_TERMINAL = 20
"""Names of targets in one group; a pipe gets all."""
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "cyan"}
_WIDEST_SEVERITY = max(len(severity) for severity in Severity)


def render_audit_table(report: AuditReport, page: Page, *, explain: bool = False) -> str:
    """Return the summary, the findings by group, the failures, and what was not checked.

    With `explain` each rule says under its first group why it matters and how to mend it.
    """
    tally = tally_of(report)
    if not (tally.findings or tally.failed or tally.gone or report.interrupted):
        return to_text(_clean(report, tally, page), page)
    groups = grouped_findings(report.findings())
    sections = (
        _summary(report, tally, page),
        _rules(tally.rules, page),
        *_groups(groups, page, explain=explain),
        *(_failures(group, page) for group in grouped_failures(report)),
        _gone(report.gone, page),
        _unchecked(report, page),
    )
    return to_text(_spaced(sections), page)


def _spaced(sections: Iterable[list[Text]]) -> Iterator[Text]:
    filled = [section for section in sections if section]
    for number, section in enumerate(filled):
        if number:
            yield Text("")
        yield from section


def _clean(report: AuditReport, tally: Tally, page: Page) -> list[Text]:
    known = f", {counted(tally.known, 'finding')} known" if tally.known else ""
    checked = f"{counted(tally.checked, 'rule')} checked"
    text = f"{targets_text(tally)}{_policy(report)}: {checked}, no findings{known}"
    return [*paragraph(text, width=page.width, hang=_INDENT), *_unchecked(report, page)]


def _policy(report: AuditReport) -> str:
    return "" if report.policy is None else f" in {inert(report.policy)}"


def _summary(report: AuditReport, tally: Tally, page: Page) -> list[Text]:
    found = findings_text(tally)
    inside = f" in {counted(tally.found, 'target')}" if tally.findings else ""
    rest = "; ".join(rest_texts(tally, report.baseline))
    lines = [
        *paragraph(f"{targets_text(tally)}{_policy(report)}", width=page.width, style=TITLE),
        *paragraph(f"{found}{inside}; {rest}", width=page.width, indent=_INDENT, hang=_INDENT),
    ]
    if report.interrupted:
        lines += paragraph(INTERRUPTED, width=page.width, indent=_INDENT, style=NOTE)
    return lines


def _rules(rules: Sequence[RuleTally], page: Page) -> list[Text]:
    if len(rules) < 2:
        return []
    names = ("severity", "findings", "targets", "what it finds")
    header = Entry(lead=(Cell("rule", QUIET),), details=(tuple(Cell(n, QUIET) for n in names),))
    entries = [
        Entry(
            lead=(Cell(inert(rule.code), PATH),),
            details=(
                (
                    Cell(rule.worst.value, _STYLES[rule.worst]),
                    Cell(f"{rule.findings:,}"),
                    Cell(f"{rule.targets:,}"),
                    Cell(rule_title(rule.code), QUIET),
                ),
            ),
        )
        for rule in rules
    ]
    return laid_out(entries, width=page.width, indent=_INDENT, header=header)


# Findings.


def _groups(groups: Sequence[FindingGroup], page: Page, *, explain: bool) -> Iterator[list[Text]]:
    told: set[str] = set()
    for group in groups:
        yield _group(group, page, explain=explain and group.code not in told)
        told.add(group.code)


def _group(group: FindingGroup, page: Page, *, explain: bool) -> list[Text]:
    severity = Cell(group.severity.value.ljust(_WIDEST_SEVERITY), _STYLES[group.severity])
    heading = Entry(
        lead=(Cell(inert(group.code), PATH), severity), details=((Cell(inert(group.message)),),)
    )
    places = [("at" if not number else "", text) for number, text in enumerate(where_texts(group))]
    rows = [*places, ("in", _named(target_texts(group), page))]
    if explain:
        rows += _explained(group.code)
    return [
        *laid_out([heading], width=page.width, indent=_INDENT),
        *_labelled(rows, page),
    ]


def _labelled(rows: Sequence[tuple[str, str]], page: Page) -> list[Text]:
    entries = [
        Entry(lead=(Cell(label, QUIET),), details=((Cell(text),),)) for label, text in rows if text
    ]
    return laid_out(entries, width=page.width, indent=2 * _INDENT)


def _explained(code: str) -> list[tuple[str, str]]:
    rule = rule_of(code)
    return [] if rule is None else [("why", rule.why), ("fix", rule.mend)]


def _named(names: Sequence[str], page: Page) -> str:
    shown = names if page.width is None else names[:_MOST_ON_A_TERMINAL]
    more = f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else ""
    count = f"{counted(len(names), 'target')}: " if len(names) > 1 else ""
    return f"{count}{', '.join(shown)}{more}"


# What else there is.


def _failures(group: FailureGroup, page: Page) -> list[Text]:
    count = f"{counted(len(group.targets), 'target')} could not be inspected"
    heading = Entry(lead=(Cell(group.kind.value, "bold red"),), details=((Cell(count),),))
    shown = group.targets if page.width is None else group.targets[:_MOST_ON_A_TERMINAL]
    lines = laid_out([heading], width=page.width, indent=_INDENT)
    lines += laid_out([_failure(one) for one in shown], width=page.width, indent=2 * _INDENT)
    if len(shown) < len(group.targets):
        more = f"and {len(group.targets) - len(shown):,} more"
        lines += paragraph(more, width=page.width, indent=2 * _INDENT, style=QUIET)
    if group.hint:
        hint = f"hint: {inert(group.hint)}"
        lines += paragraph(hint, width=page.width, indent=2 * _INDENT, hang=_INDENT, style=NOTE)
    return lines


def _failure(target: AuditedTarget) -> Entry:
    message = "" if target.failure is None else inert(target.failure.message)
    return Entry(lead=(Cell(inert(target.target), PATH),), details=((Cell(message, QUIET),),))


def _gone(gone: Sequence[GoneFinding], page: Page) -> list[Text]:
    if not gone:
        return []
    entries = [
        Entry(lead=(Cell(inert(one.code)),), details=((Cell(_gone_text(one)),),)) for one in gone
    ]
    told = f"{counted(len(gone), 'finding')} of the baseline gone: --update-baseline drops them"
    return [
        *paragraph(told, width=page.width, indent=_INDENT, style=QUIET),
        *laid_out(entries, width=page.width, indent=2 * _INDENT),
    ]


def _gone_text(gone: GoneFinding) -> str:
    place = ", ".join(inert(text) for text in (gone.target, gone.where) if text)
    return f"{place}: {inert(gone.found)}" if gone.found else place


def _unchecked(report: AuditReport, page: Page) -> list[Text]:
    groups = grouped_unchecked(report)
    if not groups:
        return []
    text = f"not checked: {'; '.join(unchecked_text(group) for group in groups)}"
    return paragraph(text, width=page.width, indent=_INDENT, hang=_INDENT, style=QUIET)
