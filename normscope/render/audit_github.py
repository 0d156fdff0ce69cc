"""AuditReport -> workflow commands that GitHub shows as annotations.

GitHub shows ten annotations of each level a step and drops the others without a word, so the worst
ones come first and the last one counts what is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normscope.audit.findings import Severity
from normscope.audit.groups import (
    FailureGroup,
    FindingGroup,
    grouped_failures,
    grouped_findings,
    grouped_unchecked,
)
from normscope.audit.policy import Place
from normscope.audit.report import AuditReport
from normscope.audit.tally import tally_of
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
from normscope.render.visible import visible

_MOST = 10
"""Annotations of one level that GitHub shows of a step."""
_MOST_NAMED = 20
"""Targets that one annotation names."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """One message at one line."""

    severity: Severity
    title: str
    lines: tuple[str, ...]
    place: Place | None
    weight: int
    """How many targets it stands for."""


def render_audit_github(report: AuditReport) -> str:
    """Return lines of the log with the counts, then at most ten annotations of each level.

    Alike findings of many targets are one annotation, at the line that names the first of them.
    """
    tally = tally_of(report)
    counts = "; ".join((findings_text(tally), *rest_texts(tally, None)))
    everything = [*_annotations(report)]
    lines = [f"normscope audit of {targets_text(tally)}: {counts}"]
    lines += [f"not checked: {unchecked_text(group)}" for group in grouped_unchecked(report)]
    for severity in reversed(Severity):
        of_level = [one for one in everything if one.severity is severity]
        lines += map(_command, _shown(of_level, severity))
    return "".join(f"{line}\n" for line in lines)


def _annotations(report: AuditReport) -> Iterator[_Annotation]:
    if report.interrupted:
        yield _Annotation(
            severity=Severity.ERROR,
            title="interrupted",
            lines=(INTERRUPTED,),
            place=None,
            weight=len(report.targets) + 1,
        )
    yield from map(_failure, grouped_failures(report))
    places = {(target.family, target.target): target.place for target in report.targets}
    for group in grouped_findings(report.findings()):
        first = group.findings[0]
        yield _finding(group, places[first.family, first.target])


def _failure(group: FailureGroup) -> _Annotation:
    messages = [
        f"{visible(target.target)}: {visible(target.failure.message)}"
        for target in group.targets
        if target.failure is not None
    ]
    return _Annotation(
        severity=Severity.ERROR,
        title=f"{group.kind.value}: {counted(len(messages), 'target')} could not be inspected",
        lines=(*_capped(messages), *((f"hint: {visible(group.hint)}",) if group.hint else ())),
        place=group.targets[0].place,
        weight=len(messages),
    )


def _finding(group: FindingGroup, place: Place | None) -> _Annotation:
    where = "; ".join(_capped(where_texts(group)))
    names = target_texts(group)
    return _Annotation(
        severity=group.severity,
        title=" ".join(text for text in (visible(group.code), rule_title(group.code)) if text),
        lines=(
            f"{where}: {visible(group.message)}" if where else visible(group.message),
            f"in {', '.join(_capped(names))}",
        ),
        place=place,
        weight=len(names),
    )


def _capped(names: Sequence[str]) -> Sequence[str]:
    if len(names) <= _MOST_NAMED:
        return names
    return (*names[:_MOST_NAMED], f"and {len(names) - _MOST_NAMED:,} more")


def _shown(annotations: Sequence[_Annotation], severity: Severity) -> Sequence[_Annotation]:
    """Return what GitHub will show: those of most targets first, the last one for the others."""
    ordered = sorted(annotations, key=lambda one: -one.weight)
    if len(ordered) <= _MOST:
        return ordered
    rest = ordered[_MOST - 1 :]
    more = _Annotation(
        severity=severity,
        title=f"+{len(rest):,} more",
        lines=(f"{len(rest):,} more of this level; the job summary has them",),
        place=None,
        weight=0,
    )
    return (*ordered[: _MOST - 1], more)


def _command(annotation: _Annotation) -> str:
    place = annotation.place
    located = ({} if place is None else {"file": visible(place.file), "line": str(place.line)}) | {
        "title": annotation.title
    }
    properties = ",".join(f"{name}={_property(value)}" for name, value in located.items())
    return f"::{_LEVELS[annotation.severity]} {properties}::{_data(chr(10).join(annotation.lines))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
