"""target + texts -> Statistics, on the checkpoint's own weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from normscope.activations.batches import Budget, batches_of
from normscope.activations.chunks import Reporting
from normscope.activations.measure import Planner, measure_batches
from normscope.activations.offload import planner_for
from normscope.activations.own_code import moved, own_inputs
from normscope.activations.plan import plan_measurement
from normscope.activations.streams import Inputs
from normscope.activations.subject import Subject, unwrapped, usable_device
from normscope.activations.texts import (
    Cuts,
    checked,
    cut_ids,
    encode_texts,
    labeller,
    longest_input,
    vocabulary_of,
)
from normscope.checkpoint import Checkpoint, CheckpointKind, resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import ModelFacts
from normscope.limits import Limits, within
from normscope.model import (
    BuiltModel,
    LoadedModel,
    Offload,
    build_on_meta,
    check_offload,
    load_model,
    load_tokenizer,
)
from normscope.statistics import DEFAULT_THRESHOLDS, Statistics, Thresholds
from normscope.versions import versions


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """How a target is loaded, and what is measured on it."""

    texts: Iterable[str] = ()
    """Taken one after the other, while the run goes on."""
    input_ids: Sequence[Sequence[int]] = ()
    """Token ids in place of texts."""
    norms: str | None = None
    """A pattern of norm names."""
    budget: Budget = field(default_factory=Budget.usual)
    """How much runs together."""
    reporting: Reporting = field(default_factory=Reporting)
    """What becomes of the rows while the run goes on."""
    max_length: int | None = None
    exclude_special: bool = False
    verify: bool = False
    """Whether each norm's output is recomputed in float64 from its input."""
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    """From where on something is a finding."""
    dtype: str | None = None
    device: str = "cpu"
    offload: Offload | None = None
    """Where the weights stay while the model runs; None for all of them on `device`."""
    attention: str | None = None
    """transformers' name of a way to compute attention."""
    tell: Callable[[str], None] = lambda _: None
    """Is given what the user should know before a long step."""
    revision: str | None = None
    offline: bool = False
    trust_remote_code: bool = False
    limits: Limits = field(default_factory=Limits)
    """Beyond them a target is `too_large`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A module with its weights."""

    module: nn.Module
    config: Any
    facts: ModelFacts
    own_inputs: Inputs | None = None
    """What the user's factory gave along."""
    planned: Planner = plan_measurement


def measure_checkpoint(target: str, options: MeasureOptions) -> Statistics:
    """Load a checkpoint and measure its norms on texts or token ids.

    Raises `NormscopeError` where it cannot be loaded or run, `UsageError` where the inputs do not
    suit it.
    """
    options = replace(options, device=usable_device(options.device))
    checkpoint = resolve_checkpoint(
        target, revision=options.revision, offline=options.offline, limits=options.limits
    )
    with within(target, options.limits):
        ready = _ready(checkpoint, options)
        tokenizer = _tokenizer(checkpoint, options)
    cuts = Cuts()
    sequences = _sequences(target, tokenizer, options, cuts)
    statistics = measure_batches(
        ready.module,
        _batches(ready, tokenizer, sequences, options),
        subject=Subject(target=target, versions=versions(), model=ready.facts),
        label=labeller(tokenizer, ready.config),
        exclude_special=options.exclude_special,
        norms=options.norms,
        reporting=options.reporting,
        planned=ready.planned,
        verify=options.verify,
        thresholds=options.thresholds,
    )
    return replace(statistics, warnings=_warnings(cuts, options))


def _ready(checkpoint: Checkpoint, options: MeasureOptions) -> _Ready:
    if checkpoint.kind is CheckpointKind.PYTHON:
        if options.offload is not None:
            check_offload(checkpoint, options.offload, options.device)
        built = moved(build_on_meta(checkpoint), device=options.device, dtype=options.dtype)
        return _Ready(
            module=unwrapped(built.module),
            config=built.config,
            facts=_facts(checkpoint, built),
            own_inputs=own_inputs(built, device=options.device, dtype=options.dtype),
        )
    loaded = load_model(
        checkpoint,
        dtype=options.dtype,
        device=options.device,
        trust_remote_code=options.trust_remote_code,
        offload=options.offload,
        attention=options.attention,
        limits=options.limits,
        tell=options.tell,
    )
    return _Ready(
        module=loaded.module,
        config=loaded.config,
        facts=_facts(checkpoint, loaded),
        planned=planner_for(loaded),
    )


def _facts(checkpoint: Checkpoint, model: BuiltModel | LoadedModel) -> ModelFacts:
    return ModelFacts(
        class_name=model.class_name,
        model_type=model.model_type,
        revision=checkpoint.commit or checkpoint.revision,
        parameters=model.parameters,
        dtype=model.dtype,
    )


def _tokenizer(checkpoint: Checkpoint, options: MeasureOptions) -> Any:
    """Return the checkpoint's tokenizer, or None where it has no file of one.

    transformers 5.24 makes up an empty tokenizer for some model types that lack one.
    """
    directory = checkpoint.directory
    names = [file.name for file in directory.iterdir()] if directory is not None else []
    given = checkpoint.kind is CheckpointKind.GGUF or any(
        name.startswith(_TOKENIZER_NAMES) or name.endswith(_TOKENIZER_SUFFIXES) for name in names
    )
    if not given:
        return None
    return load_tokenizer(
        checkpoint,
        trust_remote_code=options.trust_remote_code,
        limits=options.limits,
        tell=options.tell,
    )


_TOKENIZER_NAMES = ("tokenizer", "vocab", "spiece", "sentencepiece")
_TOKENIZER_SUFFIXES = (".model", ".tiktoken")


def _sequences(
    target: str, tokenizer: Any, options: MeasureOptions, cuts: Cuts
) -> Iterator[tuple[int, ...]]:
    if options.input_ids:
        return cut_ids(options.input_ids, max_length=options.max_length, cuts=cuts)
    if options.texts and tokenizer is None:
        raise NormscopeError(
            FailureKind.NO_INPUTS,
            f"{target}: there is no tokenizer to read a text with",
            "give token ids: --input-ids 101,2023,102",
        )
    return encode_texts(tokenizer, options.texts, max_length=options.max_length, cuts=cuts)


def _batches(
    ready: _Ready, tokenizer: Any, sequences: Iterator[tuple[int, ...]], options: MeasureOptions
) -> Iterable[Inputs]:
    if not (options.texts or options.input_ids):
        if ready.own_inputs is None:
            raise UsageError("there is nothing to measure on", "give --input TEXT")
        return [ready.own_inputs]
    return batches_of(
        ready.module,
        ready.config,
        checked(
            sequences,
            limit=longest_input(ready.config, tokenizer),
            vocabulary=vocabulary_of(ready.module),
        ),
        budget=options.budget,
        device=options.device,
    )


def _warnings(cuts: Cuts, options: MeasureOptions) -> tuple[str, ...]:
    if not cuts.count:
        return ()
    noun = "sequence was" if cuts.count == 1 else "sequences were"
    return (f"{cuts.count} {noun} cut to {options.max_length} tokens",)
