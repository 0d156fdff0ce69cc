"""`normscope inspect`: targets -> what is known of them, in the format that was asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from normscope.cli.failures import ExitStatus, answered, tell_failure
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What was typed, without the targets and the output."""

    format: Format
    views: Views
    revision: str | None
    dtype: str | None
    offline: bool
    trust_remote_code: bool
    quiet: bool


def inspect(
    targets: Targets,
    output_format: FormatOption = Format.TABLE,
    blocks: Annotated[bool, typer.Option("--blocks", help="List every block.")] = False,
    norms: Annotated[bool, typer.Option("--norms", help="List every norm.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="PATH",
            help="Show the operations that prove the verdict on one block.",
        ),
    ] = None,
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
    request = _Request(
        format=output_format,
        views=Views(blocks=blocks, norms=norms, explain=explain, verbose=verbose),
        revision=revision,
        dtype=None if dtype is None else dtype.value,
        offline=offline,
        trust_remote_code=trust_remote_code,
        quiet=quiet,
    )
    names = named_targets(targets)
    check_views(request.views, request.format, len(names))
    with open_output(output) as results:
        status = _write_answers(names, request, results)
    raise typer.Exit(status)


def _write_answers(names: list[str], request: _Request, results: Output) -> ExitStatus:
    """Write each answer as soon as the format allows; return the exit status."""
    answers: list[Answer] = []
    for answer in _answers(names, request):
        answers.append(answer)
        results.write(streamed(answer, request.format, of=len(names)))
    results.write(text_of(answers, request.format, request.views, results.page))
    failed = any(isinstance(answer, Uninspectable) for answer in answers)
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE


def _answers(names: list[str], request: _Request) -> Iterator[Answer]:
    for name in names:
        question = partial(ask, name, request)
        answer = answered(name, question, quiet=request.quiet, verbose=request.views.verbose)
        if isinstance(answer, Uninspectable):
            tell_failure(answer)
        yield answer


def ask(target: str, request: _Request) -> Answer:
    """Inspect one target; the import waits until there is one, because it brings in torch."""
    from normscope.pipeline import InspectOptions, inspect_checkpoint

    options = InspectOptions(
        revision=request.revision,
        dtype=request.dtype,
        offline=request.offline,
        trust_remote_code=request.trust_remote_code,
    )
    return inspect_checkpoint(target, options)
