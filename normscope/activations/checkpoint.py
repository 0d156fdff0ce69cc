"""target + texts -> Statistics, on the checkpoint's own weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from normscope.activations.measure import measure_batches
from normscope.activations.streams import Inputs
from normscope.activations.subject import Subject, unwrapped, usable_device
from normscope.activations.texts import (
    Sequences,
    batches_of,
    check_sequences,
    cut_ids,
    encode_texts,
    labeller,
    longest_input,
    vocabulary_of,
)
from normscope.checkpoint import Checkpoint, CheckpointKind, resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import ModelFacts
from normscope.model import BuiltModel, LoadedModel, build_on_meta, load_model, load_tokenizer
from normscope.statistics import Statistics
from normscope.versions import versions


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """How a target is loaded, and what is measured on it."""

    texts: Sequence[str] = ()
    input_ids: Sequence[Sequence[int]] = ()
    """Token ids in place of texts."""
    norms: str | None = None
    """A pattern of norm names."""
    batch_size: int = 8
    max_length: int | None = None
    exclude_special: bool = False
    dtype: str | None = None
    device: str = "cpu"
    revision: str | None = None
    offline: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A module with its weights."""

    module: nn.Module
    config: Any
    facts: ModelFacts
    own_inputs: Inputs | None = None
    """What the user's factory gave along."""


def measure_checkpoint(target: str, options: MeasureOptions) -> Statistics:
    """Load a checkpoint and measure its norms on texts or token ids.

    Raises `NormscopeError` where it cannot be loaded or run, `UsageError` where the inputs do not
    suit it.
    """
    options = replace(options, device=usable_device(options.device))
    checkpoint = resolve_checkpoint(target, revision=options.revision, offline=options.offline)
    ready = _ready(checkpoint, options)
    tokenizer = _tokenizer(checkpoint)
    sequences = _sequences(target, tokenizer, options)
    statistics = measure_batches(
        ready.module,
        _batches(ready, tokenizer, sequences, options),
        subject=Subject(target=target, versions=versions(), model=ready.facts),
        label=labeller(tokenizer),
        exclude_special=options.exclude_special,
        norms=options.norms,
    )
    return replace(statistics, warnings=_warnings(sequences, options))


def _ready(checkpoint: Checkpoint, options: MeasureOptions) -> _Ready:
    if checkpoint.kind is CheckpointKind.PYTHON:
        built = build_on_meta(checkpoint)
        own = built.inputs
        return _Ready(
            module=unwrapped(built.module),
            config=built.config,
            facts=_facts(checkpoint, built),
            own_inputs=None if own is None else Inputs(positional=own[0], keywords=own[1]),
        )
    loaded = load_model(
        checkpoint,
        dtype=options.dtype,
        device=options.device,
        trust_remote_code=options.trust_remote_code,
    )
    return _Ready(module=loaded.module, config=loaded.config, facts=_facts(checkpoint, loaded))


def _facts(checkpoint: Checkpoint, model: BuiltModel | LoadedModel) -> ModelFacts:
    return ModelFacts(
        class_name=model.class_name,
        model_type=model.model_type,
        revision=checkpoint.revision,
        parameters=model.parameters,
        dtype=model.dtype,
    )


def _tokenizer(checkpoint: Checkpoint) -> Any:
    """Return the checkpoint's tokenizer, or None where it has no file of one.

    transformers 5.24 makes up an empty tokenizer for some model types that lack one.
    """
    directory = checkpoint.directory
    names = [file.name for file in directory.iterdir()] if directory is not None else []
    given = any(
        name.startswith(_TOKENIZER_NAMES) or name.endswith(_TOKENIZER_SUFFIXES) for name in names
    )
    return load_tokenizer(checkpoint) if given else None


_TOKENIZER_NAMES = ("tokenizer", "vocab", "spiece", "sentencepiece")
_TOKENIZER_SUFFIXES = (".model", ".tiktoken")


def _sequences(target: str, tokenizer: Any, options: MeasureOptions) -> Sequences:
    if options.input_ids:
        return cut_ids(options.input_ids, options.max_length)
    if options.texts and tokenizer is None:
        raise NormscopeError(
            FailureKind.NO_INPUTS,
            f"{target}: there is no tokenizer to read a text with",
            "give token ids: --input-ids 101,2023,102",
        )
    return encode_texts(tokenizer, options.texts, max_length=options.max_length)


def _batches(
    ready: _Ready, tokenizer: Any, sequences: Sequences, options: MeasureOptions
) -> Iterable[Inputs]:
    if not sequences.ids:
        if ready.own_inputs is None:
            raise UsageError("there is nothing to measure on", "give --input TEXT")
        return [ready.own_inputs]
    check_sequences(
        sequences,
        limit=longest_input(ready.config, tokenizer),
        vocabulary=vocabulary_of(ready.module),
    )
    return batches_of(
        ready.module,
        ready.config,
        sequences,
        batch_size=options.batch_size,
        device=options.device,
    )


def _warnings(sequences: Sequences, options: MeasureOptions) -> tuple[str, ...]:
    if not sequences.cut:
        return ()
    noun = "sequence was" if sequences.cut == 1 else "sequences were"
    return (f"{sequences.cut} {noun} cut to {options.max_length} tokens",)
