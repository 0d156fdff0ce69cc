"""Plans -> the first that a module runs on: try, see how far it came, change, try again."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph
from normscope.inputs.example import ExampleInputs
from normscope.inputs.plan import Plan, changed, materialize
from normscope.inputs.request import Request
from normscope.model.quiet import quiet_transformers

Trace = Callable[[nn.Module, Mapping[str, Any], tuple[Any, ...]], Graph]

ATTEMPTS = 32
SECONDS = 30.0
"""After this much computing of this process no further attempt is begun: a busy machine changes no
answer."""


def first_that_runs(
    request: Request, starts: Iterable[Plan], trace: Trace, part: nn.Module | None = None
) -> tuple[ExampleInputs, Graph]:
    """Try plans until one runs; a failure leads to changed plans, the furthest-reaching first.

    `part` is run in place of the module that the request is about. Raises the failure of the
    attempt that came furthest, or `no_inputs`.
    """
    trials = _Trials(request)
    for plan in starts:
        trials.add(plan, 0)
    began = time.process_time()
    while trials.waiting and trials.count < ATTEMPTS and time.process_time() - began < SECONDS:
        plan = trials.waiting.pop(0).plan
        inputs = materialize(request, plan)
        with _counted_calls(request.module) as calls, _ready(request.module):
            given = inputs.fresh()
            try:
                return inputs, trace(part or request.module, given.keywords, given.positional)
            except NormscopeError as error:
                trials.failed(plan, calls[0], error)
    raise trials.furthest or NormscopeError(
        FailureKind.NO_INPUTS,
        "no inputs could be made for the forward pass",
        "give the model and its inputs from your own code with py:package.module:factory",
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    plan: Plan
    reached: int
    """How far the failed plan came that led to this one."""


@dataclass(slots=True)
class _Trials:
    """The plans that wait, and what is known from those that failed."""

    request: Request
    waiting: list[_Waiting] = field(default_factory=list)
    count: int = 0
    furthest: NormscopeError | None = None
    _furthest_reached: int = -1
    _seen: set[frozenset[tuple[str, int]]] = field(default_factory=set)
    _ends: set[tuple[int, str]] = field(default_factory=set)

    def add(self, plan: Plan, reached: int) -> None:
        """Let a plan wait behind those that came from further."""
        if plan.key() in self._seen:
            return
        self._seen.add(plan.key())
        self.waiting.append(_Waiting(plan, reached))
        self.waiting.sort(key=lambda item: -item.reached)

    def failed(self, plan: Plan, reached: int, error: NormscopeError) -> None:
        """Learn from a failure: add changed plans, unless the change made no difference."""
        self.count += 1
        if reached > self._furthest_reached:
            self.furthest, self._furthest_reached = error, reached
        end = (reached, error.message)
        if end not in self._ends:
            self._ends.add(end)
            for other in changed(self.request, plan, error.message):
                self.add(other, reached)


def entry_point(module: nn.Module) -> Callable[..., Any]:
    """Return what a module runs when it is called, or its `encode` where it has no forward."""
    missing = getattr(type(module), "forward", None) is nn.Module.forward
    name = "encode" if missing and hasattr(module, "encode") else "forward"
    return cast("Callable[..., Any]", getattr(module, name))


@contextmanager
def _ready(module: nn.Module) -> Iterator[None]:
    """Keep transformers quiet, and let a model that has only `encode` run it as its forward."""
    entry = entry_point(module)
    replaced = entry != module.forward
    if replaced:
        module.forward = entry
    try:
        with quiet_transformers():
            yield
    finally:
        if replaced:
            del module.forward


@contextmanager
def _counted_calls(module: nn.Module) -> Iterator[list[int]]:
    """Count the modules that begin to run: how far a forward came before it failed."""
    count = [0]

    def hook(_module: nn.Module, _args: Any) -> None:
        count[0] += 1

    handles = [child.register_forward_pre_hook(hook) for child in module.modules()]
    try:
        yield count
    finally:
        for handle in handles:
            handle.remove()
