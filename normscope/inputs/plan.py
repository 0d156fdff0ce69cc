"""Which inputs a plan gives, and which plans to try after one failed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from normscope.inputs.builders import BUILDERS, ON_DEMAND, STAND_INS
from normscope.inputs.example import ExampleInputs
from normscope.inputs.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which inputs to give, and which option of each."""

    choices: Mapping[str, int] = field(default_factory=dict)

    def key(self) -> frozenset[tuple[str, int]]:
        """Return what makes two plans the same."""
        return frozenset(self.choices.items())

    def with_choice(self, name: str, option: int = 0) -> "Plan":
        """Return the plan that also gives `name`, or another option of it."""
        return Plan(choices={**self.choices, name: option})

    def without(self, name: str) -> "Plan":
        """Return the plan that leaves `name` out."""
        return Plan(choices={key: at for key, at in self.choices.items() if key != name})


def start(request: Request, names: Iterable[str]) -> Plan:
    """Return the plan that gives the named inputs, as far as they can be made."""
    return Plan(choices={name: 0 for name in names if _options(request, name)})


def materialize(request: Request, plan: Plan) -> ExampleInputs:
    """Make the tensors that a plan names."""
    request = replace(request, chosen=plan.choices)
    keywords = {name: _in_dtype(request.value(name), request) for name in plan.choices}
    if "use_cache" in request.takes:
        keywords["use_cache"] = False
    return ExampleInputs(keywords=keywords)


def changed(request: Request, plan: Plan, reason: str) -> Iterator[Plan]:
    """Yield a failed plan with what the failure names, with other options, and with less."""
    mentioned = plan
    for name in request.takes.names:
        named = name in reason and name not in plan.choices and name not in STAND_INS
        if named and _options(request, name):
            mentioned = mentioned.with_choice(name)
        if name in STAND_INS and name in reason and _options(request, name):
            yield plan.with_choice(name).without(STAND_INS[name])
    yield mentioned
    for name, option in plan.choices.items():
        for other in range(option + 1, len(_options(request, name))):
            yield plan.with_choice(name, other)
    # A mask says least: leave it out before what it belongs to.
    for name in sorted(plan.choices, key=lambda name: not name.endswith("mask")):
        if name not in _kept(request) and len(plan.choices) > 1:
            yield plan.without(name)
    if not request.pinned:
        for name in request.takes.names:
            if name in ON_DEMAND and name not in plan.choices and _options(request, name):
                yield plan.with_choice(name)


def _kept(request: Request) -> set[str]:
    """Return the names that no plan leaves out."""
    prompt = ("input_ids",) if request.pinned else ()
    return {*request.takes.required, *request.pinned, *prompt}


def _options(request: Request, name: str) -> list[Any]:
    if name in request.pinned:
        return [request.pinned[name]]
    return BUILDERS[name](request) if name in BUILDERS else []


def _in_dtype(value: Any, request: Request) -> Any:
    """Give real-valued inputs the dtype of the weights, as a processor's caller does."""
    floating = (w.dtype for w in request.module.parameters() if w.is_floating_point())
    dtype = next(floating, torch.float32)
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_floating_point():
        value = value.to(dtype)
    return value.contiguous()  # options may be views that repeat one frame
