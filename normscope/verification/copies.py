"""Checkpoint + its inspection -> a small model of the same code, with random real weights."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import nn

from normscope.assembly.norm_rows import joined
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.inputs import ExampleInputs, TracedRoot, run_traced
from normscope.inputs.trial import entry_point
from normscope.inspection import Inspection
from normscope.model import BuiltModel, build_on_meta
from normscope.tracing import trace_module
from normscope.verification.randomize import randomized
from normscope.verification.rerun import Edit, Subject, is_visible, rerun
from normscope.verification.shrink import Config, shrunk_configs, with_changes

MOST_PARAMETERS = 250_000_000
MOST_ELEMENTS = 1 << 32
"""Elements of all values of one run; there are hundreds of runs."""
MOST_OF_ONE_VALUE = 1 << 27
"""Elements: half a gigabyte; the weights of the experts that each token goes to are one value."""


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
            reasons.append(f"{wording}: {model.parameters / 1e6:.0f}M parameters are too many")
        else:
            try:
                copy = _run(model, wording)
            except NormscopeError as error:
                reasons.append(f"{wording}: {error.message}")
                continue
            if _runs_like(copy, inspection):
                return copy
            # It runs in other parts than the model, or less of it: a larger one may do as it did.
            part = part or copy
    return part or NoCopy(reason=reasons[0])


def _runs_like(copy: Copy, inspection: Inspection) -> bool:
    """Tell whether a copy runs in the same parts as the model, and something of each stack."""
    ran = {joined(path, call.path) for path, subject in copy.roots for call in subject.graph.calls}
    firsts = {block.stack: block.path for block in reversed(inspection.blocks) if block.stack}
    return {path for path, _ in copy.roots if path} == set(inspection.towers) and all(
        any(path == first or path.startswith(f"{first}.") for path in ran)
        for first in firsts.values()
    )


def _candidates(
    checkpoint: Checkpoint, built: BuiltModel, inspection: Inspection
) -> Iterator[tuple[BuiltModel | NormscopeError, str]]:
    if built.config is None or built.inputs is not None:
        yield built, "the whole model"
        return
    config = built.config.to_dict()
    seen: list[object] = []
    lists = {len(part) for part in built.module.modules() if isinstance(part, nn.ModuleList)}
    for shrunk in shrunk_configs(config, inspection.blocks, sorted(lists)):
        if shrunk.config in seen:
            continue
        seen.append(shrunk.config)
        model = _built(checkpoint, config, shrunk.config)
        if isinstance(model, NormscopeError):
            yield model, shrunk.wording
            model = _built(checkpoint, config, shrunk.config, entire=True)
        yield model, shrunk.wording


def _built(
    checkpoint: Checkpoint, whole: Config, shrunk: Config, *, entire: bool = False
) -> BuiltModel | NormscopeError:
    if checkpoint.kind is CheckpointKind.GGUF:  # its own config is spread over the file's header
        small = replace(checkpoint, kind=CheckpointKind.CONFIG_FILE, config=shrunk)
    else:
        changed = with_changes(checkpoint.config or {}, whole, shrunk, entire=entire)
        small = replace(checkpoint, config=changed)
    try:
        return build_on_meta(small, dtype="float32")
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
    """Run a root; again with longer tables, then smaller numbers, where a table has no such row.

    On `meta` no one looks that up, and a default config may count its image token past its words.
    """
    module.forward = entry_point(module)
    for prepared in (_as_they_are, _with_long_tables, _with_small_numbers):
        try:
            return _running(module, prepared(module, root.inputs))
        except NormscopeError as error:
            if "index out of range" not in error.message:
                raise
            failed = error
    raise failed


def _as_they_are(_module: nn.Module, inputs: ExampleInputs) -> ExampleInputs:
    return inputs


def _with_long_tables(module: nn.Module, inputs: ExampleInputs) -> ExampleInputs:
    """Let every embedding have a row for each number in the inputs, shifted by its own rows."""
    numbers = [
        int(value.max()) + 1
        for value in inputs.keywords.values()
        if isinstance(value, torch.Tensor) and value.dtype is torch.int64 and value.numel()
    ]
    for part in module.modules():
        if isinstance(part, nn.Embedding) and numbers:
            rows = torch.arange(part.num_embeddings + max(numbers)) % part.num_embeddings
            part.weight = nn.Parameter(part.weight.detach()[rows], requires_grad=False)
    return inputs


def _with_small_numbers(module: nn.Module, inputs: ExampleInputs) -> ExampleInputs:
    """Return the inputs with every integer below the rows of the smallest embedding."""
    rows = [part.num_embeddings for part in module.modules() if isinstance(part, nn.Embedding)]
    smallest = min(rows, default=1)
    small = {
        name: value % smallest
        if isinstance(value, torch.Tensor) and value.dtype is torch.int64
        else value
        for name, value in inputs.keywords.items()
    }
    return replace(inputs, keywords=small)


def _running(module: nn.Module, inputs: ExampleInputs) -> Subject:
    """Trace the second run: code may keep what the first one computed (position tables)."""
    for given in (inputs.fresh(), inputs.fresh()):
        graph = trace_module(module, given.keywords, given.positional, largest=MOST_OF_ONE_VALUE)
    subject = Subject(module=module, inputs=inputs, graph=graph)
    last = [node.index for node in graph.nodes if is_visible(node)][-1:]
    # A value too large to be computed while tracing, for one, sends the run another way.
    rerun(subject, Edit(watched=last))
    return subject
