"""AuditReport -> the job summary that GitHub shows beside a run."""

import os
from pathlib import Path

from normscope.audit.report import AuditReport
from normscope.cli.output import say
from normscope.render.audit_markdown import render_audit_markdown
from normscope.render.visible import visible

_MOST_BYTES = 1024 * 1024
"""What GitHub takes of one step; more and it drops all of it."""
_TOO_LITTLE = 10_000


def add_to_job_summary(report: AuditReport, *, explain: bool = False) -> None:
    """Append the report as markdown to the file that GITHUB_STEP_SUMMARY names, if it does.

    What is there already stays. A file that cannot be written is a warning: the report itself has
    gone elsewhere.
    """
    name = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not name:
        return
    path = Path(name)
    try:
        room = _MOST_BYTES - (path.stat().st_size if path.exists() else 0)
        if room < _TOO_LITTLE:
            say("warning: the job summary is full: this audit is not in it")
            return
        text = render_audit_markdown(report, explain=explain, most_bytes=room)
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        say(f"warning: cannot write the job summary {visible(name)}: {error.strerror}")
