"""Baseline file <-> the findings that are known already."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from normscope.audit.findings import Finding
from normscope.audit.read_target import gone_of
from normscope.audit.record_file import RecordKind, read_record
from normscope.audit.report import AuditedTarget, GoneFinding
from normscope.versions import versions

BASELINE = RecordKind(name="baseline", schema="normscope.baseline/1", option="--update-baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A baseline file that was read."""

    file: str
    """As it was named, with `/` between folders."""
    entries: tuple[GoneFinding, ...]
    """What was found when it was written: each is either known or gone now."""


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises `UsageError` for a file that cannot be read, is no baseline, or was written by a newer
    normscope.
    """
    document, _ = read_record(path, BASELINE)
    entries = tuple(gone_of(item) for item in document.objects("findings"))
    return Baseline(file=document.where, entries=entries)


def baseline_text(entries: Iterable[GoneFinding]) -> str:
    """Return the baseline file: sorted by target, one finding a line."""
    unique = {entry.identity: entry for entry in entries}
    ordered = sorted(unique.values(), key=lambda entry: (entry.target, entry.identity))
    lines = ",\n".join(f"    {_line(entry)}" for entry in ordered)
    return (
        '{\n  "findings": ['
        + (f"\n{lines}\n  ]" if lines else "]")
        + f',\n  "normscope": {json.dumps(versions()["normscope"])},\n'
        + f'  "schema": {json.dumps(BASELINE.schema)}\n}}\n'
    )


def apply_baseline(
    targets: Sequence[AuditedTarget], baseline: Baseline
) -> tuple[tuple[AuditedTarget, ...], tuple[GoneFinding, ...]]:
    """Mark the findings that the baseline has, and return those of its that are no more.

    Gone is only what this run looked for: not what belongs to a target that failed or was not
    part of the run, nor to a rule that was not checked. A target that two families have must be
    there for both.
    """
    known = {entry.identity for entry in baseline.entries}
    marked = tuple(
        replace(
            target,
            findings=tuple(replace(f, known=f.identity in known) for f in target.findings),
        )
        for target in targets
    )
    found = {finding.identity for target in targets for finding in target.findings}
    looked_for = set(_looked_for(targets))
    gone = tuple(
        entry
        for entry in baseline.entries
        if (entry.target, entry.code) in looked_for and entry.identity not in found
    )
    return marked, gone


def updated_entries(
    targets: Sequence[AuditedTarget], baseline: Baseline | None = None, *, whole: bool = True
) -> tuple[GoneFinding, ...]:
    """Return what a baseline is to hold after a run.

    Entries that the run did not look for stay: those of targets that failed, and of rules that
    could not be checked. Those of targets that were not part of it stay where it was not of the
    `whole` policy.
    """
    looked_for, named = set(_looked_for(targets)), {target.target for target in targets}
    kept = [
        entry
        for entry in (() if baseline is None else baseline.entries)
        if (entry.target, entry.code) not in looked_for and (entry.target in named or not whole)
    ]
    return (*kept, *(_entry(f) for target in targets for f in target.findings))


def _looked_for(targets: Iterable[AuditedTarget]) -> Iterator[tuple[str, str]]:
    for target in targets:
        if target.failure is None:
            yield from ((target.target, code) for code in target.checked)


def _entry(finding: Finding) -> GoneFinding:
    return GoneFinding(
        code=finding.code,
        target=finding.target,
        where=finding.where,
        found=finding.found,
        expected=finding.expected,
    )


def _line(entry: GoneFinding) -> str:
    document: Mapping[str, str] = {item.name: getattr(entry, item.name) for item in fields(entry)}
    return json.dumps(document, sort_keys=True, ensure_ascii=True)
