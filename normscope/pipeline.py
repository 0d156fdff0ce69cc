"""The verbs, each a straight line of stages: start reading here."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from normscope.assembly import PlacedRoot, assemble_inspection
from normscope.assembly.stored import with_stored_parameters
from normscope.cache import cache_key, keep_inspection, recall_inspection
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.comparison import (
    Comparison,
    compare_inspections,
    norm_parameters,
    storage_differences,
)
from normscope.errors import NormscopeError
from normscope.graph import Graph
from normscope.inspection import Answer, EpsSetting, Inspection, ModelFacts, Uninspectable
from normscope.limits import Limits, within
from normscope.norms import condense_norms, find_norms
from normscope.placement.place import place_norms
from normscope.residuals import find_stream
from normscope.versions import versions
from normscope.weights.adapter_base import resolve_model
from normscope.weights.report import WeightsLevel
from normscope.weights.stored_norms import StoredNorms

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """How a target is found and built."""

    revision: str | None = None
    dtype: str | None = None
    offline: bool = False
    trust_remote_code: bool = False
    weights: WeightsLevel | None = None
    """How much of the weights is read; None for `local_weights` where the weights lie here."""
    local_weights: WeightsLevel = WeightsLevel.HEADERS
    """How much is read of weights that nobody asked for."""
    verify: bool = False
    """Whether each verdict is checked by its numerical consequence, in a small random copy."""
    cache: bool = False
    """Whether an answer may come from the cache folder, and is kept there."""
    cache_folder: Path | None = None
    """None for the user's."""
    limits: Limits = field(default_factory=Limits)
    """Beyond them a target is `too_large`."""
    tell: Callable[[str], None] = lambda _: None
    """Is given what the user should know before it happens: which code will run."""


def inspect_checkpoint(target: str, options: InspectOptions | None = None) -> Answer:
    """Classify every block of a checkpoint and list every norm, without its weights.

    A target that has no answer gives an `Uninspectable` that says why; `UsageError` is raised for
    a target that cannot mean anything.
    """
    options = options or InspectOptions()
    try:
        return inspect_resolved(resolve_target(target, options), options)
    except NormscopeError as error:
        return _without_answer(target, error)


def recall_checkpoint(target: str, options: InspectOptions) -> Answer | None:
    """Return what is known of a checkpoint without building it, or None.

    That is a kept answer, or why the target cannot be found. Raises `UsageError` as
    `inspect_checkpoint` does.
    """
    try:
        return recall_resolved(resolve_target(target, options), options)
    except NormscopeError as error:
        return _without_answer(target, error)


def resolve_target(target: str, options: InspectOptions) -> Checkpoint:
    """Find what a target names; raises `NormscopeError` and `UsageError`."""
    return resolve_model(
        target, revision=options.revision, offline=options.offline, limits=options.limits
    )


def inspect_resolved(checkpoint: Checkpoint, options: InspectOptions) -> Inspection:
    """Return the kept inspection of a checkpoint, or make one; raises `NormscopeError`."""
    return recall_resolved(checkpoint, options) or _inspected(checkpoint, options)


def recall_resolved(checkpoint: Checkpoint, options: InspectOptions) -> Inspection | None:
    """Return the kept inspection of a checkpoint, or None; needs no torch."""
    key = answer_key(checkpoint, options)
    kept = None if key is None else recall_inspection(key, options.cache_folder)
    if kept is None:
        return None
    model = replace(kept.model, revision=checkpoint.commit or checkpoint.revision)
    return replace(kept, target=checkpoint.target, model=model)


def _inspected(checkpoint: Checkpoint, options: InspectOptions) -> Inspection:
    with within(checkpoint.target, _limits(checkpoint, options)):
        built, traced = _run(checkpoint, options)
        roots = [placed_root(root.path, root.graph) for root in traced.roots]
    facts = ModelFacts(
        class_name=built.class_name,
        model_type=built.model_type,
        revision=checkpoint.commit or checkpoint.revision,
        parameters=built.parameters,
        dtype=built.dtype,
        eps_settings=tuple(EpsSetting(key=key, value=value) for key, value in built.eps_settings),
    )
    inspection = assemble_inspection(
        checkpoint.target, facts, versions(), roots, warnings=traced.assumed
    )
    assumptions = (*built.substituted, *inspection.assumptions)
    inspection = replace(inspection, assumptions=assumptions)
    inspection = with_stored_parameters(
        inspection, checkpoint, built.module, asked=options.weights, local=options.local_weights
    )
    if options.verify:
        from normscope.verification.verify import verify_inspection

        with within(checkpoint.target, _limits(checkpoint, options)):
            found = verify_inspection(inspection, checkpoint, built, placed_root)
        inspection = replace(inspection, verification=found)
    key = answer_key(checkpoint, options)
    if key is not None:
        graphs = [root.graph for root in traced.roots]
        keep_inspection(key, inspection, graphs, options.cache_folder)
    return inspection


def answer_key(checkpoint: Checkpoint, options: InspectOptions) -> str | None:
    """Return the key of a checkpoint's inspection, None where none is kept."""
    if not options.cache:
        return None
    return cache_key(
        checkpoint,
        dtype=options.dtype,
        trust_remote_code=options.trust_remote_code,
        verify=options.verify,
        weights=None if options.weights is None else options.weights.value,
        local=options.local_weights.value,
    )


def _run(checkpoint: Checkpoint, options: InspectOptions) -> tuple[Any, Any]:
    """Build the model and run it, with no more of the world at hand than the target has a right to.

    Raises `OverLimit` as well as `NormscopeError`.
    """
    from normscope.inputs import run_traced
    from normscope.model import sealed
    from normscope.tracing import trace_module

    built = _built(checkpoint, options)
    own = checkpoint.kind is CheckpointKind.PYTHON  # the user's code, which asks whom it likes
    with sealed(checkpoint.target, trust_remote_code=options.trust_remote_code or own):
        return built, run_traced(built, partial(trace_module, limits=options.limits))


def _built(checkpoint: Checkpoint, options: InspectOptions) -> Any:
    from normscope.model import build_on_meta

    return build_on_meta(
        checkpoint,
        dtype=options.dtype,
        trust_remote_code=options.trust_remote_code,
        limits=options.limits,
        tell=options.tell,
    )


def _limits(checkpoint: Checkpoint, options: InspectOptions) -> Limits:
    """Leave time and memory to the user's own code, which may build a real model."""
    own = checkpoint.kind is CheckpointKind.PYTHON
    return replace(options.limits, seconds=None, memory=None) if own else options.limits


def _without_answer(target: str, error: NormscopeError) -> Uninspectable:
    _log.debug("%s has no answer", target, exc_info=error)
    return Uninspectable(target=target, kind=error.kind, message=error.message, hint=error.hint)


def placed_root(path: str, graph: Graph) -> PlacedRoot:
    """Find and place the norms of one traced root."""
    norms = find_norms(graph)
    condensed = condense_norms(graph, norms)
    stream = find_stream(condensed)
    return PlacedRoot(
        path=path,
        graph=condensed,
        norms=norms,
        placed=place_norms(condensed, norms, stream),
    )


def inspect_module(module: Any, inputs: Any = (), *, target: str = "module") -> Inspection:
    """Classify the blocks of a live `nn.Module`, from one run on `inputs`.

    `inputs` is a tensor, a tuple of positional arguments or a mapping of keyword arguments. The
    module runs once, in eval mode and without gradients; its weights are not changed. Raises
    `NormscopeError` of kind `trace_failed` where its forward fails.
    """
    from normscope.tracing import trace_module

    positional, keywords = _arguments(inputs)
    graph = trace_module(module, keywords, positional)
    parameters = list(module.parameters())
    facts = ModelFacts(
        class_name=type(module).__qualname__,
        model_type=None,
        revision=None,
        parameters=sum(parameter.numel() for parameter in parameters),
        dtype=str(parameters[0].dtype).removeprefix("torch.") if parameters else "float32",
    )
    return assemble_inspection(target, facts, versions(), [placed_root("", graph)])


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(inputs, Mapping):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}


def compare_checkpoints(
    left: str, right: str, options: InspectOptions | None = None, *, tolerance: float = 0.0
) -> Comparison | tuple[Uninspectable, ...]:
    """Compare the norms of two checkpoints, and their values where both have weights.

    `tolerance` is the relative difference up to which two parameters count as equal. Of targets
    without an answer it is told why. Raises `UsageError` as `inspect_checkpoint` does.
    """
    options = replace(options or InspectOptions(), weights=WeightsLevel.NONE)
    ours, theirs = inspect_checkpoint(left, options), inspect_checkpoint(right, options)
    if isinstance(ours, Uninspectable) or isinstance(theirs, Uninspectable):
        return tuple(side for side in (ours, theirs) if isinstance(side, Uninspectable))
    found = replace(compare_inspections(ours, theirs), tolerance=tolerance)
    try:
        return _with_weights(found, ours, theirs, options)
    except NormscopeError as error:
        return (_without_answer(f"{left} and {right}", error),)


def _with_weights(
    found: Comparison, left: Inspection, right: Inspection, options: InspectOptions
) -> Comparison:
    ours, theirs = (_stored_norms(side, options) for side in (left, right))
    if ours is None or theirs is None:
        return found
    from normscope.weights.differences import value_differences

    stored = storage_differences(left, right, found.pairs, (ours, theirs))
    return replace(
        found,
        differences=(*found.differences, *stored),
        values=value_differences(ours.values, theirs.values, found.parameter_pairs),
    )


def _stored_norms(inspection: Inspection, options: InspectOptions) -> StoredNorms | None:
    from normscope.weights.read import read_stored_norms
    from normscope.weights.source import open_source

    checkpoint = resolve_target(inspection.target, options)
    source = open_source(checkpoint, remote=not options.offline)
    if source is None:
        return None
    with within(checkpoint.target, _limits(checkpoint, options)):
        built = _built(checkpoint, replace(options, tell=lambda _: None))  # was told before
    return read_stored_norms(source, built.module, norm_parameters(inspection))
