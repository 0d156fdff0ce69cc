"""The verbs, each a straight line of stages: start reading here."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from normscope.assembly import PlacedRoot, assemble_inspection
from normscope.cache import cache_key, keep_inspection, recall_inspection
from normscope.checkpoint import Checkpoint, resolve_checkpoint
from normscope.comparison import Comparison, compare_inspections, norm_parameters
from normscope.errors import AdapterOnlyError, NormscopeError, UsageError
from normscope.graph import Graph
from normscope.inspection import Answer, Inspection, ModelFacts, Uninspectable
from normscope.norms import condense_norms, find_norms
from normscope.placement.place import place_norms
from normscope.residuals import find_stream
from normscope.versions import versions
from normscope.weights.files import has_pickled_files
from normscope.weights.report import ValueDifference, WeightsLevel

_log = logging.getLogger(__name__)

_PICKLED = (
    "the weights are pickled and were not opened; --weights headers reads them with torch's "
    "loader that runs no code"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """How a target is found and built."""

    revision: str | None = None
    dtype: str | None = None
    offline: bool = False
    trust_remote_code: bool = False
    weights: WeightsLevel | None = None
    """How much of the weights is read; None for their headers where the weights lie here."""
    verify: bool = False
    """Whether each verdict is checked by its numerical consequence, in a small random copy."""
    cache: bool = False
    """Whether an answer may come from the user's cache folder, and is kept there."""


def inspect_checkpoint(target: str, options: InspectOptions | None = None) -> Answer:
    """Classify every block of a checkpoint and list every norm, without its weights.

    A target that has no answer gives an `Uninspectable` that says why; `UsageError` is raised for
    a target that cannot mean anything.
    """
    options = options or InspectOptions()
    try:
        checkpoint = _resolved(target, options)
        return _recalled(checkpoint, options) or _inspected(checkpoint, options)
    except NormscopeError as error:
        return _without_answer(target, error)


def recall_checkpoint(target: str, options: InspectOptions) -> Answer | None:
    """Return what is known of a checkpoint without building it, or None.

    That is a kept answer, or why the target cannot be found. Raises `UsageError` as
    `inspect_checkpoint` does.
    """
    try:
        return _recalled(_resolved(target, options), options)
    except NormscopeError as error:
        return _without_answer(target, error)


def _resolved(target: str, options: InspectOptions) -> Checkpoint:
    """Find the target, or the base model of the adapter that it is."""
    try:
        return resolve_checkpoint(target, revision=options.revision, offline=options.offline)
    except AdapterOnlyError as adapter:
        if adapter.base is None:
            raise
        try:
            base = resolve_checkpoint(adapter.base, offline=options.offline)
        except (NormscopeError, UsageError) as error:
            raise _without_base(adapter, error) from error
        return replace(base, target=target, adapter=adapter.directory)


def _without_base(
    adapter: AdapterOnlyError, error: NormscopeError | UsageError
) -> AdapterOnlyError:
    return AdapterOnlyError(
        f"{adapter.message}; {error.message}",
        error.hint or adapter.hint,
        base=adapter.base,
        directory=adapter.directory,
    )


def _recalled(checkpoint: Checkpoint, options: InspectOptions) -> Inspection | None:
    key = _key(checkpoint, options)
    kept = None if key is None else recall_inspection(key)
    if kept is None:
        return None
    model = replace(kept.model, revision=checkpoint.revision)
    return replace(kept, target=checkpoint.target, model=model)


def _inspected(checkpoint: Checkpoint, options: InspectOptions) -> Inspection:
    from normscope.inputs import run_traced
    from normscope.model import build_on_meta
    from normscope.tracing import trace_module

    built = build_on_meta(
        checkpoint, dtype=options.dtype, trust_remote_code=options.trust_remote_code
    )
    traced = run_traced(built, trace_module)
    roots = [placed_root(root.path, root.graph) for root in traced.roots]
    facts = ModelFacts(
        class_name=built.class_name,
        model_type=built.model_type,
        revision=checkpoint.revision,
        parameters=built.parameters,
        dtype=built.dtype,
    )
    inspection = assemble_inspection(
        checkpoint.target, facts, versions(), roots, warnings=traced.assumed
    )
    assumptions = (*built.substituted, *inspection.assumptions)
    inspection = replace(inspection, assumptions=assumptions)
    inspection = _with_weights(checkpoint, built, inspection, options)
    if options.verify:
        from normscope.verification.verify import verify_inspection

        found = verify_inspection(inspection, checkpoint, built, placed_root)
        inspection = replace(inspection, verification=found)
    key = _key(checkpoint, options)
    if key is not None:
        keep_inspection(key, inspection, [root.graph for root in traced.roots])
    return inspection


def _with_weights(
    checkpoint: Checkpoint, built: Any, inspection: Inspection, options: InspectOptions
) -> Inspection:
    """Add what the checkpoint's files say of its norms, and what an adapter trains of them."""
    if checkpoint.adapter is not None:
        from normscope.weights.adapter import read_adapter

        adapter = read_adapter(checkpoint, norm_parameters(inspection))
        inspection = replace(inspection, adapter=adapter)
    if options.weights is WeightsLevel.NONE:
        return inspection
    from normscope.weights.read import read_weights
    from normscope.weights.source import open_source

    asked = options.weights is not None
    source = open_source(checkpoint, pickled=asked, remote=asked)
    if source is None:
        said = (_PICKLED,) if has_pickled_files(checkpoint) else ()
        return replace(inspection, warnings=(*inspection.warnings, *said))
    level = options.weights or WeightsLevel.HEADERS
    stored = read_weights(source, built.module, norm_parameters(inspection), level)
    return replace(inspection, weights=level.value, stored=stored)


def _key(checkpoint: Checkpoint, options: InspectOptions) -> str | None:
    if not options.cache:
        return None
    return cache_key(
        checkpoint,
        dtype=options.dtype,
        trust_remote_code=options.trust_remote_code,
        verify=options.verify,
        weights=None if options.weights is None else options.weights.value,
    )


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
        return replace(found, values=_value_differences(ours, theirs, found, options))
    except NormscopeError as error:
        return (_without_answer(f"{left} and {right}", error),)


def _value_differences(
    left: Inspection, right: Inspection, found: Comparison, options: InspectOptions
) -> tuple[ValueDifference, ...] | None:
    ours, theirs = (_norm_values(side, options) for side in (left, right))
    if ours is None or theirs is None:
        return None
    from normscope.weights.differences import value_differences

    return value_differences(ours, theirs, found.parameter_pairs)


def _norm_values(inspection: Inspection, options: InspectOptions) -> Mapping[str, Any] | None:
    from normscope.model import build_on_meta
    from normscope.weights.read import read_norm_values
    from normscope.weights.source import open_source

    checkpoint = _resolved(inspection.target, options)
    source = open_source(checkpoint, remote=not options.offline)
    if source is None:
        return None
    built = build_on_meta(
        checkpoint, dtype=options.dtype, trust_remote_code=options.trust_remote_code
    )
    return read_norm_values(source, built.module, norm_parameters(inspection))
