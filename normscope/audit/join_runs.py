"""Runs -> one AuditReport, as if one run had seen every target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from normscope.audit.ranges import ranges_of
from normscope.audit.read_report import Run, RunSummary, read_runs
from normscope.audit.report import AuditedTarget, AuditReport, GoneFinding

_MOST_SHARDS = 10_000
"""A count beyond which `1/N` is no shard of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedReport:
    """A report of several files."""

    report: AuditReport
    """`interrupted` where a run did not end or a shard is missing."""
    remarks: tuple[str, ...]
    """What the reader has to know of the joining."""


def joined_report(files: Sequence[tuple[str, str]]) -> JoinedReport:
    """Join reports, each given as a name and a text; of a target's answers the last one counts.

    The targets stand in the order of the policy's lines, whatever the order of the files.

    Raises `UsageError` for a text that is no report.
    """
    runs = [run for name, text in files for run in read_runs(name, text)]
    summaries = [run.summary for run in runs if run.summary is not None]
    targets = tuple(sorted(_last_answers(runs), key=_order))
    open_ends = tuple(_open_ends(runs))
    report = AuditReport(
        versions=_versions(summaries),
        policy=_only(summary.policy for summary in summaries),
        targets=targets,
        baseline=_only(summary.baseline for summary in summaries),
        gone=_gone(summaries, targets),
        interrupted=bool(open_ends),
    )
    again = sum(len(run.targets) for run in runs) - len(targets)
    repeated = [f"{again} answers are replaced by later ones of the same targets"] if again else []
    return JoinedReport(
        report=report, remarks=(*open_ends, *repeated, *_differences(summaries, report))
    )


def _last_answers(runs: Iterable[Run]) -> Iterable[AuditedTarget]:
    answers = {(target.family, target.target): target for run in runs for target in run.targets}
    return answers.values()


def _order(target: AuditedTarget) -> tuple[bool, str, int, str, str]:
    """Return the order of the policy's lines: lines of jsonl stand in the order of completion."""
    place = target.place
    file, line = ("", 0) if place is None else (place.file, place.line)
    return (place is None, file, line, target.family, target.target)


def _only(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _versions(summaries: Sequence[RunSummary]) -> Mapping[str, str]:
    packages = sorted({package for summary in summaries for package in summary.versions})
    return {
        package: ", ".join(
            sorted({s.versions[package] for s in summaries if package in s.versions})
        )
        for package in packages
    }


def _gone(
    summaries: Sequence[RunSummary], targets: Sequence[AuditedTarget]
) -> tuple[GoneFinding, ...]:
    """Return what no run has found: a shard does not see what stands in another one."""
    found = {finding.identity for target in targets for finding in target.findings}
    failed = {target.target for target in targets if target.failure is not None}
    everything = dict.fromkeys(gone for summary in summaries for gone in summary.gone)
    return tuple(
        gone for gone in everything if gone.identity not in found and gone.target not in failed
    )


# What is not as it would be in one run.


def _open_ends(runs: Sequence[Run]) -> Iterator[str]:
    """Yield why the report may lack targets; a shard that was run again counts as it ended last."""
    last = {run.summary.shard: run for run in runs if run.summary is not None}
    for run in runs:
        if run.summary is None:
            end = _how_it_ends(run)
            yield f"{run.name}: {end}: the run was ended before every target was answered"
        elif run.summary.interrupted and (
            run.summary.shard is None or last[run.summary.shard] is run
        ):
            yield f"{run.name}: the run was interrupted before every target was answered"
    yield from _missing_shards(shard for shard in last if shard is not None)


def _how_it_ends(run: Run) -> str:
    if run.cut:
        return "its last line is cut off"
    return "it has no summary" if run.targets else "it is empty"


def _missing_shards(shards: Iterable[str]) -> Iterator[str]:
    there = set(shards)
    for count in sorted({shard.rpartition("/")[2] for shard in there}):
        if count.isascii() and count.isdecimal() and int(count) <= _MOST_SHARDS:
            missing = [n for n in range(1, int(count) + 1) if f"{n}/{count}" not in there]
            if len(missing) == 1:
                yield f"shard {missing[0]}/{count} is missing"
            elif missing:
                yield f"shards {ranges_of(missing)} of {count} are missing"


def _differences(summaries: Sequence[RunSummary], report: AuditReport) -> Iterator[str]:
    for package, version in report.versions.items():
        if ", " in version:
            yield f"the runs had different versions of {package}: {version}"
    for what, names in (
        ("policies", {summary.policy for summary in summaries}),
        ("baselines", {summary.baseline for summary in summaries}),
    ):
        if len(names) > 1:
            shown = ", ".join(sorted("none" if name is None else name for name in names))
            yield f"the runs had different {what}: {shown}"
