"""`normscope diff`: two targets -> what differs between their norms."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from normscope.cli.budgets import read_budget
from normscope.cli.failures import ExitStatus, answered, tell_failure
from normscope.cli.options import (
    ONE_TARGET_HELP,
    DtypeOption,
    Format,
    FormatOption,
    MaxModulesOption,
    MaxOperationsOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    TrustOption,
    VerboseOption,
)
from normscope.cli.output import Output, open_output, teller
from normscope.inspection import Uninspectable
from normscope.render.documents import render_json, render_json_line

if TYPE_CHECKING:  # usage errors come before the analysis is imported
    from normscope.comparison import Comparison
    from normscope.render.page import Page


def diff(
    left: Annotated[str, typer.Argument(metavar="A", help=ONE_TARGET_HELP)],
    right: Annotated[str, typer.Argument(metavar="B", help="The other target.")],
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0.0,
            help="Relative difference of a gain or bias up to which it counts as equal.",
        ),
    ] = 0.0,
    output_format: FormatOption = Format.TABLE,
    max_modules: MaxModulesOption = None,
    max_operations: MaxOperationsOption = None,
    output: OutputOption = None,
    revision: RevisionOption = None,
    dtype: DtypeOption = None,
    offline: OfflineOption = False,
    trust_remote_code: TrustOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_cache: NoCacheOption = False,
) -> None:
    """Compare the norms of two targets: structure, facts and, where both have weights, values.

    Norms are matched by role and place in the dataflow, never by name. The exit status is 1 where
    anything differs.
    """
    from normscope.pipeline import InspectOptions, compare_checkpoints

    options = InspectOptions(
        revision=revision,
        dtype=None if dtype is None else dtype.value,
        offline=offline,
        trust_remote_code=trust_remote_code,
        cache=not no_cache,
        limits=read_budget(modules=max_modules, operations=max_operations),
        tell=teller(quiet=quiet),
    )
    with open_output(output) as results:
        question = partial(compare_checkpoints, left, right, options, tolerance=tolerance)
        answer = answered(f"{left} and {right}", question, quiet=quiet, verbose=verbose)
        failures = (answer,) if isinstance(answer, Uninspectable) else answer
        if isinstance(failures, tuple):
            status = _tell_failures(failures, output_format, results)
        else:
            results.write(_text_of(failures, output_format, results.page))
            status = ExitStatus.DONE if failures.equal else ExitStatus.FINDINGS
    raise typer.Exit(status)


def _tell_failures(
    failures: Sequence[Uninspectable], written: Format, results: Output
) -> ExitStatus:
    for failure in failures:
        tell_failure(failure)
        if written in (Format.JSON, Format.JSONL):
            whole = written is Format.JSON and len(failures) == 1
            results.write(render_json(failure) if whole else render_json_line(failure))
    return ExitStatus.UNANSWERED


def _text_of(comparison: "Comparison", written: Format, page: "Page") -> str:
    from normscope.render.comparison import render_comparison
    from normscope.render.comparison_documents import (
        render_comparison_json,
        render_comparison_markdown,
    )

    if written is Format.TABLE:
        return render_comparison(comparison, page)
    if written is Format.MARKDOWN:
        return render_comparison_markdown(comparison)
    return render_comparison_json(comparison, indent=2 if written is Format.JSON else None)
