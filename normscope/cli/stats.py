"""`normscope stats`: targets and texts -> what flowed through their norms."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normscope.cli.failures import ExitStatus
from normscope.cli.options import (
    TARGET_HELP,
    DtypeOption,
    Format,
    FormatOption,
    MaxModulesOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    TrustOption,
    VerboseOption,
)
from normscope.cli.output import Output, check_distinct, open_output, say
from normscope.cli.stats_answers import StatsRequest, measured_answers
from normscope.cli.stats_inputs import read_inputs
from normscope.cli.stats_loading import read_memory
from normscope.cli.stats_plot import save_plot
from normscope.cli.stats_save import check_files
from normscope.cli.stats_thresholds import THRESHOLD_HELP, read_thresholds
from normscope.cli.stats_views import View, streamed_statistics, text_of_statistics
from normscope.cli.targets import named_targets
from normscope.errors import UsageError
from normscope.inspection import Uninspectable

if TYPE_CHECKING:
    from normscope.render.statistics_documents import StatisticsAnswer

DEFAULT_TARGET = "demo:pre-norm"


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
        str | None,
        typer.Option(
            "--field",
            metavar="KEY",
            help="Where a JSON line has its text. [default: text, for .jsonl]",
        ),
    ] = None,
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
        typer.Option(
            "--save", metavar="FILE", help="Every row: .safetensors, .parquet, .csv or .jsonl."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="The norms over depth: .png, .svg or .html."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Most sequences that run together.")
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            "--batch-tokens",
            min=1,
            help="Most tokens that run together, with padding. [default: 1024]",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", min=1, help="Cut longer sequences to so many tokens."),
    ] = None,
    exclude_special: Annotated[
        bool, typer.Option("--exclude-special", help="Leave out the tokenizer's special tokens.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute each norm's output from its input.")
    ] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option("--threshold", metavar="CODE=N", help=THRESHOLD_HELP),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="Where to run: auto, cpu, cuda or mps.")
    ] = "cpu",
    device_map: Annotated[
        str | None,
        typer.Option(
            "--device-map",
            metavar="MAP",
            help="Leave weights that do not fit in their files: auto, balanced or sequential.",
        ),
    ] = None,
    max_memory: Annotated[
        str | None,
        typer.Option(
            "--max-memory",
            metavar="SIZE",
            help="Most memory for weights, like 2GB; the others stay in their files.",
        ),
    ] = None,
    attn_implementation: Annotated[
        str | None,
        typer.Option(
            "--attn-implementation",
            metavar="NAME",
            help="How attention is computed: eager, sdpa, flash_attention_2, …",
        ),
    ] = None,
    max_modules: MaxModulesOption = None,
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
    check_files(save, plot, targets=len(names))
    check_distinct(
        {"--output": output, "--save": save, "--plot": plot},
        [] if input_file is None else [input_file],
    )
    request = StatsRequest(
        inputs=read_inputs(texts or [], input_file, field, input_ids or [], targets=len(names)),
        norms=norm,
        view=view,
        format=output_format,
        save=save,
        plot=plot,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        max_length=max_length,
        exclude_special=exclude_special,
        verify=verify,
        thresholds=read_thresholds(threshold or []),
        dtype=None if dtype is None else dtype.value,
        device=device,
        device_map=device_map,
        max_memory=read_memory(max_memory),
        attention=attn_implementation,
        max_modules=max_modules,
        revision=revision,
        offline=offline,
        trust_remote_code=trust_remote_code,
        quiet=quiet,
        verbose=verbose,
    )
    _check(names, request)
    with open_output(output) as results, closing(request.inputs):
        status = _write_answers(names, request, results)
    raise typer.Exit(status)


def _named(targets: Sequence[str], *, quiet: bool) -> list[str]:
    if targets:
        return named_targets(targets)
    if not quiet:
        say(f"no target was named: measuring {DEFAULT_TARGET}, a small model in this package")
    return [DEFAULT_TARGET]


def _check(names: Sequence[str], request: StatsRequest) -> None:
    """Raise `UsageError` for what cannot be carried out, before any work is done."""
    # The user's own code may bring its inputs along.
    if not request.inputs and not all(name.startswith("py:") for name in names):
        raise UsageError("there is nothing to measure on", "give --input TEXT")


def _write_answers(names: Sequence[str], request: StatsRequest, results: Output) -> ExitStatus:
    """Write each answer as soon as the format allows; return the exit status."""
    answers: list[StatisticsAnswer] = []
    for answer in measured_answers(names, request):
        answers.append(answer)
        results.write(streamed_statistics(answer, request.format, of=len(names)))
    results.write(text_of_statistics(answers, request.format, request.view, results.page))
    if request.plot is not None:
        save_plot(request.plot, answers)
    failed = any(isinstance(answer, Uninspectable) for answer in answers)
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE
