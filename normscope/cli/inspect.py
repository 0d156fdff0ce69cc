"""`normscope inspect`: targets -> what is known of them, in the format that was asked for."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from normscope.cli.failures import ExitStatus, tell_failure
from normscope.cli.inspect_answers import answers_to
from normscope.cli.inspect_request import Request
from normscope.cli.inspect_views import Views, check_views, streamed, text_of
from normscope.cli.options import (
    DtypeOption,
    Format,
    FormatOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    Targets,
    TrustOption,
    VerboseOption,
)
from normscope.cli.output import Output, open_output
from normscope.cli.targets import named_targets
from normscope.inspection import Answer, Uninspectable


def inspect(
    targets: Targets,
    output_format: FormatOption = Format.TABLE,
    blocks: Annotated[bool, typer.Option("--blocks", help="List every block.")] = False,
    norms: Annotated[bool, typer.Option("--norms", help="List every norm.")] = False,
    diagram: Annotated[
        bool, typer.Option("--diagram", help="Draw each distinct block: its stream and branches.")
    ] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="PATH",
            help="Show the operations that prove the verdict on one block.",
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Inspect N targets side by side."),
    ] = 1,
    output: OutputOption = None,
    revision: RevisionOption = None,
    dtype: DtypeOption = None,
    offline: OfflineOption = False,
    trust_remote_code: TrustOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_cache: NoCacheOption = False,
) -> None:
    """Classify every block and list every norm of each target; no weights are needed."""
    request = Request(
        format=output_format,
        views=Views(blocks=blocks, norms=norms, diagram=diagram, explain=explain, verbose=verbose),
        revision=revision,
        dtype=None if dtype is None else dtype.value,
        offline=offline,
        trust_remote_code=trust_remote_code,
        quiet=quiet,
        cache=not no_cache,
        jobs=jobs,
    )
    names = named_targets(targets)
    check_views(request.views, request.format, len(names))
    with open_output(output) as results:
        status = _write_answers(names, request, results)
    raise typer.Exit(status)


def _write_answers(names: Sequence[str], request: Request, results: Output) -> ExitStatus:
    """Write each answer as soon as the format allows; return the exit status."""
    answers: list[Answer] = []
    with closing(answers_to(names, request)) as arriving:
        for answer in arriving:
            if isinstance(answer, Uninspectable):
                tell_failure(answer)
            answers.append(answer)
            results.write(streamed(answer, request.format, of=len(names)))
    results.write(text_of(answers, request.format, request.views, results.page))
    failed = any(isinstance(answer, Uninspectable) for answer in answers)
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE
