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
    JobsOption,
    MaxModulesOption,
    MaxOperationsOption,
    MemoryLimitOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    Targets,
    TimeoutOption,
    TrustOption,
    VerboseOption,
)
from normscope.cli.output import Output, check_distinct, open_output, say
from normscope.cli.process_limits import read_limits
from normscope.cli.targets import files_named, named_targets
from normscope.inspection import Answer, Inspection, Uninspectable
from normscope.render.verified import disagreeing
from normscope.render.visible import visible
from normscope.weights.report import WeightsLevel


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
    gains: Annotated[
        bool, typer.Option("--gains", help="Show the norms' gains over depth; reads their values.")
    ] = False,
    weights: Annotated[
        WeightsLevel | None,
        typer.Option(
            "--weights",
            help="Read nothing of the weights, their headers, or also the norms' values. "
            "[default: headers where the weights lie here]",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check each verdict by numbers, in a small random copy."),
    ] = False,
    jobs: JobsOption = 1,
    timeout: TimeoutOption = None,
    memory_limit: MemoryLimitOption = None,
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
    """Classify every block and list every norm of each target; no weights are needed."""
    request = Request(
        format=output_format,
        views=Views(
            blocks=blocks,
            norms=norms,
            diagram=diagram,
            gains=gains,
            explain=explain,
            verbose=verbose,
        ),
        revision=revision,
        dtype=None if dtype is None else dtype.value,
        offline=offline,
        trust_remote_code=trust_remote_code,
        weights=WeightsLevel.NORMS if gains else weights,
        verify=verify,
        quiet=quiet,
        cache=not no_cache,
        jobs=jobs,
        limits=read_limits(timeout, memory_limit),
        max_modules=max_modules,
        max_operations=max_operations,
    )
    names = named_targets(targets)
    check_views(request.views, request.format, len(names))
    check_distinct({"--output": output}, files_named(names))
    with open_output(output) as results:
        status = _write_answers(names, request, results)
    raise typer.Exit(status)


def _tell_disagreements(inspection: Inspection) -> None:
    """Warn of verdicts that their numbers contradict: one of the two has a bug."""
    if inspection.verification is not None and not inspection.verification.agrees:
        told = f"{inspection.target}: {disagreeing(inspection.verification)}"
        say(f"warning: {visible(told)}; please report it")


def _write_answers(names: Sequence[str], request: Request, results: Output) -> ExitStatus:
    """Write each answer as soon as the format allows; return the exit status."""
    answers: list[Answer] = []
    with closing(answers_to(names, request)) as arriving:
        for answer in arriving:
            if isinstance(answer, Uninspectable):
                tell_failure(answer)
            elif not request.quiet:
                _tell_disagreements(answer)
            answers.append(answer)
            results.write(streamed(answer, request.format, of=len(names)))
    results.write(text_of(answers, request.format, request.views, results.page))
    failed = any(isinstance(answer, Uninspectable) for answer in answers)
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE
