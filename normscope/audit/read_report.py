"""The text of a report in json or jsonl -> the runs that it tells of."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from normscope.audit.fields import Fields
from normscope.audit.read_target import gone_of, target_of
from normscope.audit.report import AuditedTarget, GoneFinding
from normscope.errors import UsageError

_HINT = "name files that `normscope audit -f jsonl` or `-f json` wrote"
_DOCUMENT, _SUMMARY = "normscope.audit", "normscope.audit-summary"
_TARGETS = ("normscope.audited", "normscope.failure")
_VERSION = 1
_BEGINNINGS = ('{"checked": ', '{"family": ', '{"baseline": ')
"""How the lines of an answer, a failure and a summary begin: one that is cut is known by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run says of itself when it ends."""

    versions: Mapping[str, str]
    policy: str | None
    baseline: str | None
    shard: str | None
    interrupted: bool
    gone: tuple[GoneFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, or as much of it as was written."""

    name: str
    """The file's, as it was named."""
    targets: tuple[AuditedTarget, ...]
    summary: RunSummary | None
    """None where the run ended before it was written."""
    cut: bool = False
    """Whether the file ends in the middle of a line."""


@dataclass(slots=True)
class _Collected:
    """What was read since the last summary."""

    targets: list[AuditedTarget] = field(default_factory=list)

    def ended(self, name: str, summary: RunSummary | None, *, cut: bool = False) -> Run:
        """Return the run, and begin another."""
        targets, self.targets = tuple(self.targets), []
        return Run(name=name, targets=targets, summary=summary, cut=cut)


def read_runs(name: str, text: str) -> tuple[Run, ...]:
    """Return the runs of one file; a last line that was cut off is left out.

    A run ends with its summary; files may be put together. An empty file is a run that was ended
    before its first answer. Raises `UsageError` for what is no
    report, is damaged in its middle, or was written by a newer normscope.
    """
    document = _parsed(text)
    if isinstance(document, dict) and str(document.get("schema")).startswith(f"{_DOCUMENT}/"):
        fields = Fields.of(document, name)
        _kind_of(fields)
        targets = tuple(_target(item) for item in fields.objects("targets"))
        return (Run(name=name, targets=targets, summary=_summary(fields)),)
    return tuple(_runs(name, text)) or (_Collected().ended(name, None),)


def _runs(name: str, text: str) -> Iterator[Run]:
    collected = _Collected()
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for place, (number, line) in enumerate(lines):
        value = _parsed(line)
        last = place == len(lines) - 1
        if value is None and last and (place or _begins_a_line_of_ours(line)):
            yield collected.ended(name, None, cut=True)
            return
        where = f"{name}, line {number}"
        if not isinstance(value, dict):
            raise UsageError(f"{where}: not a line of an audit's report", _HINT)
        fields = Fields.of(value, where)
        if _kind_of(fields) == _SUMMARY:
            yield collected.ended(name, _summary(fields))
        else:
            collected.targets.append(target_of(fields))
    if collected.targets:
        yield collected.ended(name, None)


def _begins_a_line_of_ours(text: str) -> bool:
    return any(text.startswith(begun) or begun.startswith(text) for begun in _BEGINNINGS)


def _parsed(text: str) -> Any:
    """Return a JSON value; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _target(fields: Fields) -> AuditedTarget:
    _kind_of(fields)
    return target_of(fields)


def _kind_of(fields: Fields) -> str:
    """Return the schema without its version. Raises `UsageError` for one that is not ours."""
    schema = fields.values.get("schema")
    kind, _, version = str(schema).rpartition("/")
    if kind not in (_DOCUMENT, _SUMMARY, *_TARGETS):
        raise UsageError(f"{fields.where}: not a line of an audit's report", _HINT)
    if version != str(_VERSION):
        raise UsageError(
            f"{fields.where}: its schema is {schema}, and this normscope reads {kind}/{_VERSION}",
            "install the version of normscope that wrote it, or a newer one",
        )
    return kind


def _summary(fields: Fields) -> RunSummary:
    versions = Fields.of(fields.values.get("versions"), fields.where)
    return RunSummary(
        versions={package: versions.text(package) for package in versions.values},
        policy=fields.text_or_none("policy"),
        baseline=fields.text_or_none("baseline"),
        shard=fields.text_or_none("shard"),
        interrupted=fields.flag("interrupted"),
        gone=tuple(gone_of(item) for item in fields.objects("gone")),
    )
