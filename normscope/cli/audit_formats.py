"""`-f FORMAT[:FILE]` -> where an audit's report goes, in which formats."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normscope.audit.findings import Severity
from normscope.cli.failures import ExitStatus
from normscope.cli.output import Output, ReaderGoneError, open_output
from normscope.errors import UsageError
from normscope.render.visible import visible

if TYPE_CHECKING:  # the rules and the formats are imported when there is a report
    from normscope.audit.report import AuditedTarget, AuditReport
    from normscope.render.page import Page


class AuditFormat(StrEnum):
    """How an audit's report is written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"


AuditFormatsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(AuditFormat)}: to stdout, or to FILE. May be given several times. "
        "[default: table]",
    ),
]
FailOnOption = Annotated[
    Severity,
    typer.Option("--fail-on", help="The least severity of a new finding that gives status 1."),
]
ExplainOption = Annotated[
    bool,
    typer.Option("--explain", help="Say of each rule why it matters and how to mend it."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """One format, and where it goes."""

    format: AuditFormat
    path: Path | None
    """None for stdout."""


def destinations(formats: Sequence[str] | None, output: Path | None) -> tuple[Destination, ...]:
    """Return what was asked for: the table to stdout if nothing was.

    `output` is the file of the one format that names none. Raises `UsageError` for a format that
    there is not, two for stdout, or two for one file.
    """
    found = [_destination(text) for text in formats or [AuditFormat.TABLE.value]]
    unnamed = [one for one in found if one.path is None]
    if output is not None and not unnamed:
        raise UsageError("--output FILE is for a format without a file of its own")
    if len(unnamed) > 1:
        shown = " and ".join(one.format.value for one in unnamed)
        raise UsageError(
            f"{shown} cannot both go to one place", f"write `-f {unnamed[-1].format.value}:FILE`"
        )
    placed = tuple(
        Destination(format=one.format, path=output) if one.path is None else one for one in found
    )
    files = [one.path.absolute() for one in placed if one.path is not None]
    for path in files:
        if files.count(path) > 1:
            raise UsageError(f"two formats cannot go to one file: {visible(path.name)}")
    return placed


def _destination(text: str) -> Destination:
    name, colon, file = text.partition(":")
    if name not in set(AuditFormat):
        near = difflib.get_close_matches(name, list(AuditFormat), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(AuditFormat)}"
        raise UsageError(f"there is no format {name!r}", hint)
    if colon and not file:
        raise UsageError(f"`-f {visible(text)}` names no file", f"write `-f {name}:FILE`")
    path = None if file in ("", "-") else Path(file)
    return Destination(format=AuditFormat(name), path=path)


class Reports:
    """Every text that one audit writes."""

    def __init__(
        self,
        outputs: Sequence[tuple[AuditFormat, Output]],
        *,
        explain: bool,
        fail_on: Severity,
    ) -> None:
        self._outputs = outputs
        self._explain = explain
        self._fail_on = fail_on

    def answered(self, target: "AuditedTarget") -> None:
        """Write what a format says of a target as soon as it is known."""
        from normscope.render.audit_documents import render_audited_line

        for written, output in self._outputs:
            if written is AuditFormat.JSONL:
                self._write(output, render_audited_line(target))

    def finish(self, report: "AuditReport") -> None:
        """Write the rest; also for a report of an audit that was interrupted."""
        from normscope.cli.job_summary import add_to_job_summary

        for written, output in self._outputs:
            self._write(output, self._rest(report, written, output.page))
            if written is AuditFormat.GITHUB:
                add_to_job_summary(report, explain=self._explain)

    def _write(self, output: Output, text: str) -> None:
        try:
            output.write(text)
        except ReaderGoneError:  # the files of a run do not hang on who reads its stdout
            if len(self._outputs) == 1:
                raise

    def _rest(self, report: "AuditReport", written: AuditFormat, page: "Page") -> str:
        from normscope.render.audit_documents import render_audit_summary_line

        if written is AuditFormat.JSONL:
            return render_audit_summary_line(report)
        return audit_text(report, written, page, explain=self._explain, fail_on=self._fail_on)


@contextmanager
def open_reports(
    places: Sequence[Destination], *, explain: bool = False, fail_on: Severity = Severity.WARNING
) -> Iterator[Reports]:
    """Give the writer of all formats; files are put in place when the block ends without an error.

    Raises `UsageError` where a file cannot be written, before any work is done if that can be
    known.
    """
    with ExitStack() as stack:
        outputs = [(one.format, stack.enter_context(open_output(one.path))) for one in places]
        yield Reports(outputs, explain=explain, fail_on=fail_on)


def audit_text(
    report: "AuditReport",
    written: AuditFormat,
    page: "Page",
    *,
    explain: bool = False,
    fail_on: Severity = Severity.WARNING,
) -> str:
    """Return a whole report in one format."""
    from normscope.render import audit_documents as documents
    from normscope.render.audit_github import render_audit_github
    from normscope.render.audit_junit import render_audit_junit
    from normscope.render.audit_markdown import render_audit_markdown
    from normscope.render.audit_sarif import render_audit_sarif
    from normscope.render.audit_table import render_audit_table

    match written:
        case AuditFormat.TABLE:
            return render_audit_table(report, page, explain=explain)
        case AuditFormat.JSON:
            return documents.render_audit_json(report)
        case AuditFormat.JSONL:
            return documents.render_audit_json_lines(report)
        case AuditFormat.MARKDOWN:
            return render_audit_markdown(report, explain=explain)
        case AuditFormat.GITHUB:
            return render_audit_github(report)
        case AuditFormat.SARIF:
            return render_audit_sarif(report)
        case AuditFormat.JUNIT:
            return render_audit_junit(report, fail_on=fail_on)


def audit_status(report: "AuditReport", fail_on: Severity) -> ExitStatus:
    """Return what the shell gets: the same for every format."""
    if report.failed or report.interrupted:
        return ExitStatus.UNANSWERED
    return ExitStatus.FINDINGS if report.findings(fail_on) else ExitStatus.DONE
