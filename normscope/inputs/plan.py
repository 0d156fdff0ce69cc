"""Which inputs to try first, and what to try after a failure."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph
from normscope.inputs.builders import BUILDERS, ON_DEMAND
from normscope.inputs.example import ExampleInputs
from normscope.inputs.request import Request
from normscope.model.quiet import quiet_transformers

Trace = Callable[[nn.Module, Mapping[str, Any], tuple[Any, ...]], Graph]

ATTEMPTS = 32
SECONDS = 30.0
"""After this much time no further attempt is begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which inputs to give, and which option of each."""

    choices: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Attempt:
    """One plan that was tried, how far it came, and why it ended."""

    plan: Plan
    reached: int
    error: NormscopeError


def first_that_runs(
    request: Request, starts: Iterable[Plan], trace: Trace
) -> tuple[ExampleInputs, Graph]:
    """Try plans until one runs; a failure leads to changed plans, the furthest-reaching first.

    Raises the failure of the attempt that reached furthest, or `no_inputs`.
    """
    waiting = [(0, place, plan) for place, plan in enumerate(starts)]
    seen = {_key(plan) for _, _, plan in waiting}
    ends: set[tuple[int, str]] = set()
    failed: list[_Attempt] = []
    began = time.monotonic()
    while waiting and len(failed) < ATTEMPTS and time.monotonic() - began < SECONDS:
        plan = waiting.pop(0)[-1]
        inputs = materialize(request, plan)
        with _counted_calls(request.module) as reached, quiet_transformers():
            try:
                return inputs, trace(request.module, inputs.keywords, inputs.positional)
            except NormscopeError as error:
                failed.append(_Attempt(plan, reached[0], error))
        end = (failed[-1].reached, failed[-1].error.message)
        if end in ends:  # the change made no difference, so more of it will not either
            continue
        ends.add(end)
        for changed in _changed(request, failed[-1]):
            if _key(changed) not in seen:
                seen.add(_key(changed))
                waiting.append((-failed[-1].reached, len(seen), changed))
        waiting.sort(key=lambda item: item[:2])
    if not failed:
        raise NormscopeError(
            FailureKind.NO_INPUTS,
            "no inputs could be made for the forward pass",
            "give the model and its inputs from your own code with py:package.module:factory",
        )
    raise max(failed, key=lambda attempt: attempt.reached).error


def materialize(request: Request, plan: Plan) -> ExampleInputs:
    """Make the tensors that a plan names."""
    request = replace(request, chosen=plan.choices)
    keywords = {name: _in_dtype(request.value(name), request) for name in plan.choices}
    if "use_cache" in request.takes:
        keywords["use_cache"] = False
    return ExampleInputs(keywords=keywords)


def start(request: Request, names: Iterable[str]) -> Plan:
    """Return the plan that gives the named inputs, as far as they can be made."""
    return Plan(choices={name: 0 for name in names if _options(request, name)})


def _options(request: Request, name: str) -> list[Any]:
    if name in request.pinned:
        return [request.pinned[name]]
    if name not in BUILDERS:
        return []
    found: list[Any] = BUILDERS[name](request)
    return found


def _in_dtype(value: Any, request: Request) -> Any:
    """Give real-valued inputs the dtype of the weights, as a processor's caller does."""
    floating = (w.dtype for w in request.module.parameters() if w.is_floating_point())
    dtype = next(floating, torch.float32)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


def _changed(request: Request, attempt: _Attempt) -> Iterator[Plan]:
    """Yield the plan with what the failure names, with other options, and with less."""
    choices = attempt.plan.choices
    mentioned = [
        name
        for name in request.takes.names
        if name not in choices and name in str(attempt.error) and _options(request, name)
    ]
    if mentioned:
        yield replace(attempt.plan, choices={**choices, **dict.fromkeys(mentioned, 0)})
    for name, option in choices.items():
        for other in range(option + 1, len(_options(request, name))):
            yield replace(attempt.plan, choices={**choices, name: other})
    kept = {*request.takes.required, *request.pinned, *(("input_ids",) if request.pinned else ())}
    for name in choices:
        if name not in kept and len(choices) > 1:
            yield replace(
                attempt.plan, choices={key: at for key, at in choices.items() if key != name}
            )
    for name in () if request.pinned else request.takes.names:
        if name in ON_DEMAND and name not in choices and _options(request, name):
            yield replace(attempt.plan, choices={**choices, name: 0})


def _key(plan: Plan) -> frozenset[tuple[str, int]]:
    return frozenset(plan.choices.items())


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
