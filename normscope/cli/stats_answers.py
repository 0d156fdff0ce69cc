"""Targets + request -> the answer of each, its rows saved and its progress shown meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from normscope.cli.budgets import measuring_budget
from normscope.cli.failures import ExitStatus, answered, tell_failure
from normscope.cli.interrupts import Interrupts, interruptible
from normscope.cli.options import Format
from normscope.cli.output import say
from normscope.cli.stats_inputs import MeasuredInputs
from normscope.cli.stats_progress import Follower, following
from normscope.cli.stats_save import SavedRows
from normscope.cli.stats_views import View
from normscope.errors import UsageError
from normscope.inspection import Uninspectable
from normscope.render.figures import counted
from normscope.render.statistics_documents import StatisticsAnswer
from normscope.render.visible import visible
from normscope.statistics import Statistics, Thresholds

if TYPE_CHECKING:
    from normscope.model import Offload


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsRequest:
    """What was typed, without the targets and the output."""

    inputs: MeasuredInputs
    norms: str | None
    view: View
    format: Format
    save: Path | None
    plot: Path | None
    batch_size: int | None
    batch_tokens: int | None
    max_length: int | None
    exclude_special: bool
    verify: bool
    thresholds: Thresholds
    dtype: str | None
    device: str
    device_map: str | None
    max_memory: int | None
    attention: str | None
    max_modules: int | None
    revision: str | None
    offline: bool
    trust_remote_code: bool
    quiet: bool
    verbose: bool

    def needs_every_token(self) -> bool:
        """Tell whether a summary would not do."""
        return self.format is Format.TABLE and self.view is not View.SUMMARY


def measured_answers(names: Sequence[str], request: StatsRequest) -> Iterator[StatisticsAnswer]:
    """Yield the answer of each target as soon as it is known.

    A signal ends it with status 130, and what was saved by then is kept.
    """
    with interruptible() as interrupts:
        for name in names:
            yield _answer(name, request, interrupts)


def _answer(name: str, request: StatsRequest, interrupts: Interrupts) -> StatisticsAnswer:
    with ExitStack() as stack:
        saved = None
        if request.save is not None:
            saved = stack.enter_context(
                closing(SavedRows(path=request.save, interrupts=interrupts))
            )
        follower = Follower(None)
        try:
            with following(name, request.inputs.count(), quiet=request.quiet) as follower:
                question = partial(_measure, name, request, saved, follower)
                answer = answered(name, question, quiet=request.quiet, verbose=request.verbose)
        except KeyboardInterrupt as error:
            _end_early("interrupted", saved, follower)
            raise typer.Exit(ExitStatus.INTERRUPTED) from error
        except UsageError:  # of a line in the middle of a file
            _end_early("ended", saved, follower)
            raise
        _tell(answer, request)
        if isinstance(answer, Uninspectable):
            _end_early("ended", saved, follower)
        elif saved is not None:
            saved.commit()
        return answer


def _end_early(how: str, saved: SavedRows | None, follower: Follower) -> None:
    """Keep whole chunks, and say how far it came; a run that never began has nothing to say."""
    so_far = f"{how} after {follower.so_far()}" if follower.tokens else how
    if saved is not None and saved.sequences:
        saved.commit()
        held = f"the first {counted(saved.sequences, 'sequence')} ({saved.tokens:,} tokens)"
        say(f"{so_far}; {visible(str(saved.path))} holds {held}")
    elif follower.tokens or how == "interrupted":
        say(so_far)


def _tell(answer: StatisticsAnswer, request: StatsRequest) -> None:
    if isinstance(answer, Uninspectable):
        tell_failure(answer)
    elif not request.quiet:
        for warning in answer.warnings:
            say(f"warning: {visible(warning)}")


def _measure(
    target: str, request: StatsRequest, saved: SavedRows | None, follower: Follower
) -> Statistics:
    """Measure one target; the import waits until there is one, because it brings in torch."""
    from normscope.activations.batches import Budget
    from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
    from normscope.activations.chunks import Reporting

    budget = Budget(sequences=request.batch_size, tokens=request.batch_tokens)
    options = MeasureOptions(
        texts=request.inputs.texts(),
        input_ids=request.inputs.ids,
        norms=request.norms,
        budget=budget if budget.sequences or budget.tokens else Budget.usual(),
        reporting=Reporting(sink=saved, follower=follower, every_token=request.needs_every_token()),
        max_length=request.max_length,
        exclude_special=request.exclude_special,
        verify=request.verify,
        thresholds=request.thresholds,
        dtype=request.dtype,
        device=request.device,
        offload=_offload(request),
        attention=request.attention,
        limits=measuring_budget(modules=request.max_modules),
        tell=partial(_say_first, quiet=request.quiet),
        revision=request.revision,
        offline=request.offline,
        trust_remote_code=request.trust_remote_code,
    )
    return measure_checkpoint(target, options)


def _offload(request: StatsRequest) -> "Offload | None":
    """Either option alone is enough to leave weights in their files."""
    from normscope.model import Offload

    if request.device_map is None and request.max_memory is None:
        return None
    return Offload(device_map=request.device_map or "auto", memory=request.max_memory)


def _say_first(text: str, *, quiet: bool) -> None:
    if not quiet:
        say(visible(text))
