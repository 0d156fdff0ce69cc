"""The command line: which commands there are."""

import signal
from typing import Annotated

import typer

from normscope.cli.audit import audit
from normscope.cli.diff import diff
from normscope.cli.failures import every_error_told
from normscope.cli.inspect import inspect
from normscope.cli.report import report
from normscope.cli.rule import rule
from normscope.cli.stats import stats
from normscope.cli.streams import open_closed_streams
from normscope.versions import versions

app = typer.Typer(
    name="normscope",
    help="Where a model's norms stand, and what they do to its activations.",
    epilog="Exit status: 0 done, 1 done with findings, 2 usage error, "
    "3 a target could not be answered, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("inspect", short_help="Classify every block, list every norm.")(
    every_error_told()(inspect)
)
app.command("stats", short_help="Measure what each norm does to real activations.")(
    every_error_told()(stats)
)

app.command("audit", short_help="Hold many checkpoints against rules and a policy.")(
    every_error_told()(audit)
)
app.command("diff", short_help="Compare the norms of two checkpoints.")(every_error_told()(diff))
app.command("report", short_help="Join the reports of audits, in any format.")(
    every_error_told()(report)
)
app.command("rule", short_help="Tell what a rule checks, why, and how to fix what it finds.")(
    every_error_told()(rule)
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"normscope {versions()['normscope']}")
        raise typer.Exit


@app.callback()
def normscope(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Where a model's norms stand, and what they do to its activations."""


def main() -> None:
    """Run the command line; ends the process with one of `ExitStatus`."""
    open_closed_streams()
    try:
        app(prog_name="normscope")
    finally:
        # All is written: an interrupt while the libraries are taken down has nothing to tell of.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Where one has passed through an `exec`, as imports have them, CPython would end as if
        # killed by it, whatever the exit status; any other `exec` makes it forget.
        exec("")
