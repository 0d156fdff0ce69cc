"""AuditReport -> markdown for a job summary or a pull request comment, never longer than asked.

What does not fit is counted: GitHub takes 65,536 characters for a comment and 1 MiB for the
summary of a step, and refuses what is longer.
"""

from collections.abc import Iterable, Iterator, Sequence

from normscope.audit.groups import (
    FailureGroup,
    FindingGroup,
    UncheckedGroup,
    grouped_failures,
    grouped_findings,
    grouped_unchecked,
)
from normscope.audit.report import AuditReport, GoneFinding
from normscope.audit.rules import rule_of
from normscope.audit.tally import RuleTally, Tally, tally_of
from normscope.render.audit_words import (
    INTERRUPTED,
    findings_text,
    rest_texts,
    rule_title,
    target_texts,
    targets_text,
    where_texts,
)
from normscope.render.figures import counted
from normscope.render.inert import inert
from normscope.render.markdown import code, escaped, joined, table

COMMENT_BYTES = 65_000
"""What a comment on a pull request holds, with room for a line of others."""
_RESERVED = 1_000
"""Bytes for the sentences that say what was left out."""
_MOST_BESIDE = 3
"""Targets that a cell names without being opened."""
_MOST_NAMED = 50
"""Targets that an opened cell names."""

_FINDING = ("rule", "severity", "finding", "where", "targets")
_FAILURE = ("target", "why", "message", "hint")
_UNCHECKED = ("not checked", "targets", "why")
_GONE = ("rule", "target", "where", "found")


def render_audit_markdown(
    report: AuditReport, *, explain: bool = False, most_bytes: int = COMMENT_BYTES
) -> str:
    """Return the summary, the findings by group, the failures, and what was not checked.

    The text has at most `most_bytes` bytes of UTF-8; rows that do not fit are counted instead.
    """
    tally = tally_of(report)
    head = [*_head(report, tally), _rules(tally.rules, explain=explain)]
    room = most_bytes - _RESERVED - sum(map(_size, head))
    rest = [
        _titled("Not inspected", _within(_FAILURE, _failure_rows(report), room // 4)),
        _within(_UNCHECKED, map(_unchecked_row, grouped_unchecked(report)), room // 8),
        _folded(
            "Gone findings of the baseline", _within(_GONE, map(_gone_row, report.gone), room // 8)
        ),
    ]
    groups = grouped_findings(report.findings())
    findings = _within(_FINDING, map(_finding_row, groups), room - sum(map(_size, rest)))
    whole = joined((*head, findings, *rest))
    return whole if _size(whole) <= most_bytes else joined(head[:1])


def _head(report: AuditReport, tally: Tally) -> list[str]:
    policy = "" if report.policy is None else f" in {_code(report.policy)}"
    rest = "; ".join(rest_texts(tally, None))
    return [
        f"### normscope audit: {findings_text(tally)}",
        f"{targets_text(tally)}{policy}: {rest}.",
        f"**{INTERRUPTED}**" if report.interrupted else "",
    ]


def _rules(rules: Sequence[RuleTally], *, explain: bool) -> str:
    rows = [
        (
            _code(rule.code),
            rule.worst.value,
            f"{rule.findings:,}",
            f"{rule.targets:,}",
            _text(rule_title(rule.code)),
        )
        for rule in rules
    ]
    counts = table(("rule", "severity", "findings", "targets", "what it finds"), rows)
    return "\n\n".join((counts, *(_explained(rule.code) for rule in rules if explain)))


def _explained(rule_code: str) -> str:
    rule = rule_of(rule_code)
    if rule is None:
        return ""
    return f"{_code(rule.code)}: {escaped(rule.why)} To mend it: {escaped(rule.mend)}"


def _finding_row(group: FindingGroup) -> tuple[str, ...]:
    return (
        _code(group.code),
        group.severity.value,
        _text(group.message),
        "<br>".join(map(_code, where_texts(group))),
        _names(target_texts(group)),
    )


def _names(names: Sequence[str]) -> str:
    spans = [_code(name) for name in names[:_MOST_NAMED]]
    if len(names) <= _MOST_BESIDE:
        return ", ".join(spans)
    more = len(names) - len(spans)
    lines = [*spans, *((f"and {more:,} more",) if more else ())]
    summary = counted(len(names), "target")
    return f"<details><summary>{summary}</summary>{'<br>'.join(lines)}</details>"


def _failure_rows(report: AuditReport) -> Iterator[tuple[str, ...]]:
    for group in grouped_failures(report):
        yield from _failed(group)


def _failed(group: FailureGroup) -> Iterator[tuple[str, ...]]:
    for target in group.targets:
        message = "" if target.failure is None else target.failure.message
        yield (_code(target.target), _text(group.kind.value), _text(message), _text(group.hint))


def _gone_row(gone: GoneFinding) -> tuple[str, ...]:
    return (_code(gone.code), _code(gone.target), _code(gone.where), _text(gone.found))


def _unchecked_row(group: UncheckedGroup) -> tuple[str, ...]:
    return (_text(", ".join(group.codes)), f"{group.targets:,}", _text(group.reason))


def _titled(title: str, text: str) -> str:
    return f"**{title}**\n\n{text}" if text else ""


def _folded(title: str, text: str) -> str:
    if not text:
        return ""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


# What fits, and what markdown would read.


def _within(header: Sequence[str], rows: Iterable[tuple[str, ...]], room: int) -> str:
    """Return a table of the rows that fit into `room` bytes, and how many do not."""
    kept: list[tuple[str, ...]] = []
    used = _size(table(header, [header]))
    left_out = 0
    for row in rows:
        needed = _size(" | ".join(row)) + len("|  |\n")
        if used + needed > room:
            left_out += 1
        else:
            used += needed
            kept.append(row)
    more = f"and {left_out:,} more, left out for their length" if left_out else ""
    return "\n\n".join(part for part in (table(header, kept), more) if part)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _code(text: str) -> str:
    return code(inert(text))


def _text(text: str) -> str:
    """Return the text as it is: no markup, no mention of a person, no reference to an issue."""
    return escaped(inert(text))
