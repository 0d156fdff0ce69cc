"""Example inputs by trial: the fullest that the module runs on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph
from normscope.inputs.builders import BUILDERS, GIVEN, HANDED_ON, PROMPT
from normscope.inputs.example import ExampleInputs
from normscope.inputs.facts import Facts
from normscope.inputs.modalities import Modality, modalities_of
from normscope.inputs.plan import Plan, materialize, start
from normscope.inputs.request import Request
from normscope.inputs.signature import Signature, signature_of
from normscope.inputs.trial import Trace, entry_point, first_that_runs
from normscope.limits import failure_of_size
from normscope.model import BuiltModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRoot:
    """One module that was run, and what it did."""

    path: str
    """"" for the whole model."""
    graph: Graph
    inputs: ExampleInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedModel:
    """The graphs of one model: of the whole, or of its towers where the whole cannot run."""

    roots: tuple[TracedRoot, ...]
    assumed: tuple[str, ...] = ()

    @property
    def towers(self) -> tuple[str, ...]:
        """Paths of the sub-models that were traced alone."""
        return tuple(root.path for root in self.roots if root.path)


def run_traced(built: BuiltModel, trace: Trace) -> TracedModel:
    """Find inputs that the module runs on and return what it did."""
    if built.inputs is not None:
        positional, keywords = built.inputs
        graph = trace(built.module, keywords, positional)
        given = ExampleInputs(keywords=keywords, positional=positional)
        return TracedModel(roots=(TracedRoot(path="", graph=graph, inputs=given),))
    notes = list(built.assumed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the same inputs, and so the same report, every time
        roots = list(_roots(built.module, built.config, "", trace, notes))
    paths = [root.path for root in roots]
    return TracedModel(roots=tuple(_own(root, paths) for root in roots), assumed=tuple(notes))


def _own(root: TracedRoot, paths: Sequence[str]) -> TracedRoot:
    """Leave to the parts that were run alone what they say of their own modules."""
    prefix = f"{root.path}." if root.path else ""
    alone = tuple(
        f"{path.removeprefix(prefix)}."
        for path in paths
        if path != root.path and path.startswith(prefix)
    )
    kept = {name: graph for name, graph in root.graph.unrun.items() if not name.startswith(alone)}
    return replace(root, graph=replace(root.graph, unrun=kept)) if alone else root


def example_inputs(built: BuiltModel) -> ExampleInputs:
    """Return the inputs that would be tried first, without placeholders for other modalities."""
    request = request_for(built.module, built.config)
    return materialize(request, next(_starts(request)))


def request_for(module: nn.Module, config: Any) -> Request:
    """Return the question that a module's forward asks of the builders."""
    takes = signature_of(entry_point(module))
    return Request(
        module=module,
        facts=Facts(config=config),
        takes=replace(takes, names=(*takes.names, *_handed_on(module, takes))),
        builders=BUILDERS,
    )


def _handed_on(module: nn.Module, takes: Signature) -> Iterator[str]:
    """Yield the inputs that a forward hands on to modules inside without naming them."""
    kinds = {type(child) for child in module.modules()} if takes.open else set()
    for name in HANDED_ON:
        if name not in takes and any(name in signature_of(kind.forward) for kind in kinds):
            yield name


def _roots(
    module: nn.Module, config: Any, path: str, trace: Trace, notes: list[str]
) -> Iterator[TracedRoot]:
    """Run a module whole, and alone what did not run in it."""
    failure: NormscopeError | None = None
    ran: Mapping[str, int] = {}
    try:
        inputs, graph = _asked(module, config, trace, notes)
    except NormscopeError as error:
        failure = error
    else:
        ran = graph.call_counts
        yield TracedRoot(path=path, graph=graph, inputs=inputs)
    parts = 0
    for inner, part in _unrun_models(module, "", ran):
        name = f"{path}.{inner}" if path else inner
        try:
            for root in _roots(part, getattr(part, "config", None), name, trace, notes):
                parts += 1
                yield root
        except NormscopeError as error:
            notes.append(f"{name} was not run: {error.message}")
    if failure is not None:
        if not parts:
            raise failure
        notes.append(f"{path or 'the whole model'} could not be run: {failure.message}")


def _unrun_models(
    module: nn.Module, path: str, ran: Mapping[str, int]
) -> Iterator[tuple[str, nn.Module]]:
    """Yield the outermost sub-modules that did not run and are models: they have a config."""
    for name, child in module.named_children():
        inner = f"{path}.{name}" if path else name
        began = inner in ran or any(called.startswith(f"{inner}.") for called in ran)
        if not began and hasattr(child, "main_input_name") and hasattr(child, "config"):
            yield inner, child
        else:
            yield from _unrun_models(child, inner, ran)


def _asked(
    module: nn.Module, config: Any, trace: Trace, notes: list[str]
) -> tuple[ExampleInputs, Graph]:
    """Run a module whole; what a config's own numbers break in the builders is no bug of theirs."""
    try:
        return _whole(request_for(module, config), trace, notes)
    except NormscopeError:
        raise
    except Exception as error:
        said = next(iter(str(error).splitlines()), "no message")
        raise NormscopeError(
            failure_of_size(error) or FailureKind.NO_INPUTS,
            f"no inputs can be made from this config: {type(error).__name__}: {said}",
            "look for a number in its config.json that cannot be meant",
        ) from error


def _whole(request: Request, trace: Trace, notes: list[str]) -> tuple[ExampleInputs, Graph]:
    _require_known(request)
    failure: NormscopeError | None = None
    for name, asked in _variants(request, tuple(modalities_of(request, trace, notes))):
        try:
            found = first_that_runs(asked, _starts(asked), trace)
        except NormscopeError as error:
            failure = failure or error
            if name:
                notes.append(f"the prompt with {name} could not be run: {error.message}")
        else:
            if failure is not None and asked.sequences == 1:
                notes.append(f"only one sequence could be run at once: {failure.message}")
            return found
    raise failure or NormscopeError(FailureKind.NO_INPUTS, "no inputs could be made")


def _variants(request: Request, modalities: Sequence[Modality]) -> Iterator[tuple[str, Request]]:
    """Yield what is asked for with all modalities, with each alone, with none.

    One whose features could not be made is left out, unless nothing runs without it. The last
    resort is a single sequence: some code was written for no more.
    """
    every = {name for one in modalities for name in one.inputs}
    made = tuple(one for one in modalities if one.count)
    for chosen in _subsets(made):
        given = {name for one in chosen for name in one.inputs}
        asked = request.without(every - given)
        if not set(asked.takes.required) - set(asked.takes.names):
            yield " and ".join(one.name for one in chosen), _with_modalities(asked, chosen)
    if len(made) < len(modalities):
        yield "", request
    yield "", replace(request, sequences=1)


def _subsets(found: Sequence[Modality]) -> Iterator[tuple[Modality, ...]]:
    """Yield all of them, each alone, none."""
    yield tuple(found)
    if len(found) > 1:
        yield from ((one,) for one in found)
    if found:
        yield ()


def _with_modalities(request: Request, chosen: Sequence[Modality]) -> Request:
    pinned: Mapping[str, Any] = dict(chain.from_iterable(one.inputs.items() for one in chosen))
    return replace(
        request,
        pinned={name: value for name, value in pinned.items() if name in request.takes},
        placeholders={one.token: one.count for one in chosen if one.token is not None},
    )


def _require_known(request: Request) -> None:
    unknown = [name for name in request.takes.required if name not in BUILDERS]
    if unknown:
        raise NormscopeError(
            FailureKind.NO_INPUTS,
            f"forward() needs {', '.join(unknown)}, which cannot be made from the config",
            "give the model and its inputs from your own code with py:package.module:factory",
        )


def _starts(request: Request) -> Iterator[Plan]:
    """The fullest inputs first, then what forward() cannot do without."""
    main = getattr(request.module, "main_input_name", None)
    usual = [name for name in ([main] if isinstance(main, str) else main or ()) if name]
    needed = [name for name in (*request.takes.required, *usual) if name in BUILDERS]
    full = [
        name
        for name in request.takes.names
        if (name in needed and name in request.takes)
        or name in request.pinned
        or (name in PROMPT and "input_ids" in request.takes)
        or (name in GIVEN and not request.placeholders)
    ]
    yield start(request, full)
    yield start(request, [name for name in full if name in needed or name in request.pinned])
    if "input_ids" in request.takes and not request.pinned:
        yield start(request, [name for name in full if name in PROMPT])
