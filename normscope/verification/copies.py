"""Checkpoint + its inspection -> a small model of the same code, with random real weights."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from torch import nn

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.inputs import TracedRoot, run_traced
from normscope.inspection import Inspection
from normscope.model import BuiltModel, build_on_meta
from normscope.tracing import trace_module
from normscope.verification.randomize import randomized
from normscope.verification.rerun import Edit, Subject, is_visible, rerun
from normscope.verification.shrink import Config, shrunk_configs, with_changes

MOST_PARAMETERS = 150_000_000
MOST_ELEMENTS = 1 << 32
"""Elements of all values of one run; there are hundreds of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A model that runs for real, as the roots that it was traced in."""

    wording: str
    roots: tuple[tuple[str, Subject], ...]
    """The path of each root ("" for the whole model) and the run of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCopy:
    """Why there is none."""

    reason: str


def copy_of(checkpoint: Checkpoint, built: BuiltModel, inspection: Inspection) -> Copy | NoCopy:
    """Build and run the smallest copy whose code accepts its config."""
    reasons: list[str] = []
    part: Copy | None = None
    for model, wording in _candidates(checkpoint, built, inspection):
        if isinstance(model, NormscopeError):
            reasons.append(model.message)
        elif model.parameters > MOST_PARAMETERS:
            reasons.append(f"{wording}: it has {model.parameters} parameters")
        else:
            try:
                copy = _run(model, wording)
            except NormscopeError as error:
                reasons.append(f"{wording}: {error.message}")
                continue
            if {path for path, _ in copy.roots if path} == set(inspection.towers):
                return copy
            # It runs in other parts than the model: a larger one may run as a whole.
            part = part or copy
    return part or NoCopy(reason=reasons[0])


def _candidates(
    checkpoint: Checkpoint, built: BuiltModel, inspection: Inspection
) -> Iterator[tuple[BuiltModel | NormscopeError, str]]:
    if built.config is None or built.inputs is not None:
        yield built, "the whole model"
        return
    config = built.config.to_dict()
    seen: list[object] = []
    for shrunk in shrunk_configs(config, inspection.blocks):
        if shrunk.config in seen:
            continue
        seen.append(shrunk.config)
        given = with_changes(checkpoint.config or {}, config, shrunk.config)
        yield _built(checkpoint, given), shrunk.wording


def _built(checkpoint: Checkpoint, config: Config) -> BuiltModel | NormscopeError:
    try:
        return build_on_meta(replace(checkpoint, config=config), dtype="float32")
    except NormscopeError as error:
        return error


def _run(model: BuiltModel, wording: str) -> Copy:
    """Find inputs on `meta`, then run the same with random weights."""
    traced = run_traced(model, trace_module)
    elements = sum(prod(node.shape) for root in traced.roots for node in root.graph.nodes)
    if elements > MOST_ELEMENTS:
        raise NormscopeError(FailureKind.TOO_LARGE, f"one run computes {elements} elements")
    real = randomized(model.module)
    count = f"{model.parameters / 1e6:.1f}M parameters"
    roots = [(root.path, _subject(real.get_submodule(root.path), root)) for root in traced.roots]
    return Copy(wording=f"{wording}, {count}", roots=tuple(roots))


def _subject(module: nn.Module, root: TracedRoot) -> Subject:
    """Trace the second run: code may keep what the first one computed (position tables)."""
    inputs = root.inputs
    trace_module(module, inputs.keywords, inputs.positional)
    graph = trace_module(module, inputs.keywords, inputs.positional)
    subject = Subject(module=module, inputs=inputs, graph=graph)
    last = [node.index for node in graph.nodes if is_visible(node)][-1:]
    # A value too large to be computed while tracing, for one, sends the run another way.
    rerun(subject, Edit(watched=last))
    return subject
