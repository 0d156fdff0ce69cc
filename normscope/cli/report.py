"""`normscope report`: reports of audits -> one report, in the formats that were asked for."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from normscope.audit.findings import Severity
from normscope.cli.audit_formats import (
    AuditFormatsOption,
    ExplainOption,
    FailOnOption,
    audit_status,
    destinations,
    open_reports,
)
from normscope.cli.options import OutputOption, QuietOption
from normscope.cli.output import check_distinct, say
from normscope.cli.targets import files_named
from normscope.errors import UsageError
from normscope.render.visible import visible


def report(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="What `normscope audit -f jsonl` or `-f json` wrote; - for stdin."
        ),
    ],
    formats: AuditFormatsOption = None,
    fail_on: FailOnOption = Severity.WARNING,
    explain: ExplainOption = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Join the reports of several shards or runs, and write them in any format.

    Of two answers of one target the later one counts. The exit status is that of `audit`: 3 where
    a target has no answer or a report is not complete, else 1 where there are findings.
    """
    from normscope.audit.join_runs import joined_report

    places = destinations(formats, output)
    read = tuple(files_named(files))
    for place in places:
        check_distinct({f"-f {place.format.value}": place.path}, read)
    with open_reports(places, explain=explain, fail_on=fail_on) as reports:
        joined = joined_report(_texts(files))
        if joined.report.interrupted or not quiet:
            for remark in joined.remarks:
                say(f"warning: {visible(remark)}")
        for target in joined.report.targets:
            reports.answered(target)
        reports.finish(joined.report)
    raise typer.Exit(audit_status(joined.report, fail_on))


def _texts(files: Sequence[str]) -> list[tuple[str, str]]:
    if files.count("-") > 1:
        raise UsageError("standard input can be read once only")
    return [("standard input" if file == "-" else file, _text(file)) for file in files]


def _text(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{visible(file)} is not UTF-8 text") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else "there is no such name"
        raise UsageError(f"cannot read {visible(file)}: {reason}") from error
