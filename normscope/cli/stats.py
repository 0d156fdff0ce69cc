"""`normscope stats`: targets and texts -> what flowed through their norms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from normscope.cli.failures import ExitStatus, answered, tell_failure
from normscope.cli.options import (
    TARGET_HELP,
    DtypeOption,
    Format,
    FormatOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    TrustOption,
    VerboseOption,
)
from normscope.cli.output import Output, open_output, say
from normscope.cli.stats_inputs import MeasuredInputs, read_inputs
from normscope.cli.stats_save import check_save, save_statistics
from normscope.cli.stats_views import View, streamed_statistics, text_of_statistics
from normscope.cli.targets import named_targets
from normscope.errors import UsageError
from normscope.inspection import Uninspectable
from normscope.render.statistics_documents import StatisticsAnswer
from normscope.render.visible import visible
from normscope.statistics import Statistics

DEFAULT_TARGET = "demo:pre-norm"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What was typed, without the targets and the output."""

    inputs: MeasuredInputs
    norms: str | None
    view: View
    format: Format
    save: Path | None
    batch_size: int
    max_length: int | None
    exclude_special: bool
    dtype: str | None
    device: str
    revision: str | None
    offline: bool
    trust_remote_code: bool
    quiet: bool
    verbose: bool


def stats(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help=f"{TARGET_HELP} [default: {DEFAULT_TARGET}]"),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="TEXT", help="A text; - is standard input."),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input-file", metavar="FILE", help="A sequence a line, or a JSON object (.jsonl)."
        ),
    ] = None,
    field: Annotated[
        str, typer.Option("--field", metavar="KEY", help="Where a .jsonl line has its text.")
    ] = "text",
    input_ids: Annotated[
        list[str] | None,
        typer.Option("--input-ids", metavar="IDS", help="Token ids, like 101,2023,102."),
    ] = None,
    norm: Annotated[
        str | None,
        typer.Option("--norm", metavar="GLOB", help="Only the norms with such a name: '*.ln_1'."),
    ] = None,
    view: Annotated[View, typer.Option("--view", help="What the table shows.")] = View.SUMMARY,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Every row, as .safetensors, .csv or .jsonl."),
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Sequences that run together.")
    ] = 8,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", min=1, help="Cut longer sequences to so many tokens."),
    ] = None,
    exclude_special: Annotated[
        bool, typer.Option("--exclude-special", help="Leave out the tokenizer's special tokens.")
    ] = False,
    device: Annotated[
        str, typer.Option("--device", help="Where to run: auto, cpu, cuda or mps.")
    ] = "cpu",
    output_format: FormatOption = Format.TABLE,
    output: OutputOption = None,
    revision: RevisionOption = None,
    dtype: DtypeOption = None,
    offline: OfflineOption = False,
    trust_remote_code: TrustOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_cache: NoCacheOption = False,  # accepted everywhere; no measurement is kept
) -> None:
    """Measure mean and variance before and after each norm, token by token, in a forward pass."""
    names = _named(targets or [], quiet=quiet)
    request = _Request(
        inputs=read_inputs(texts or [], input_file, field, input_ids or []),
        norms=norm,
        view=view,
        format=output_format,
        save=save,
        batch_size=batch_size,
        max_length=max_length,
        exclude_special=exclude_special,
        dtype=None if dtype is None else dtype.value,
        device=device,
        revision=revision,
        offline=offline,
        trust_remote_code=trust_remote_code,
        quiet=quiet,
        verbose=verbose,
    )
    _check(names, request)
    with open_output(output) as results:
        status = _write_answers(names, request, results)
    raise typer.Exit(status)


def _named(targets: Sequence[str], *, quiet: bool) -> list[str]:
    if targets:
        return named_targets(targets)
    if not quiet:
        say(f"no target was named: measuring {DEFAULT_TARGET}, a small model in this package")
    return [DEFAULT_TARGET]


def _check(names: Sequence[str], request: _Request) -> None:
    """Raise `UsageError` for what cannot be carried out, before any work is done."""
    check_save(request.save, targets=len(names))
    # The user's own code may bring its inputs along.
    if not request.inputs and not all(name.startswith("py:") for name in names):
        raise UsageError("there is nothing to measure on", "give --input TEXT")


def _write_answers(names: Sequence[str], request: _Request, results: Output) -> ExitStatus:
    """Write each answer as soon as the format allows; return the exit status."""
    answers: list[StatisticsAnswer] = []
    for answer in _answers(names, request):
        answers.append(answer)
        results.write(streamed_statistics(answer, request.format, of=len(names)))
    results.write(text_of_statistics(answers, request.format, request.view, results.page))
    failed = any(isinstance(answer, Uninspectable) for answer in answers)
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE


def _answers(names: Sequence[str], request: _Request) -> Iterator[StatisticsAnswer]:
    for name in names:
        question = partial(_measure, name, request)
        answer = answered(name, question, quiet=request.quiet, verbose=request.verbose)
        if isinstance(answer, Uninspectable):
            tell_failure(answer)
        else:
            _tell_and_save(answer, request)
        yield answer


def _tell_and_save(statistics: Statistics, request: _Request) -> None:
    if request.save is not None:
        save_statistics(request.save, statistics)
    for warning in statistics.warnings:
        if not request.quiet:
            say(f"warning: {visible(warning)}")


def _measure(target: str, request: _Request) -> Statistics:
    """Measure one target; the import waits until there is one, because it brings in torch."""
    from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint

    options = MeasureOptions(
        texts=request.inputs.texts,
        input_ids=request.inputs.ids,
        norms=request.norms,
        batch_size=request.batch_size,
        max_length=request.max_length,
        exclude_special=request.exclude_special,
        dtype=request.dtype,
        device=request.device,
        revision=request.revision,
        offline=request.offline,
        trust_remote_code=request.trust_remote_code,
    )
    return measure_checkpoint(target, options)
