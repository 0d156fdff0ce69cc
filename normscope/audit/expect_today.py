"""Inspection -> Expectation: what it is today, as far as a policy can say it."""

import math
from collections.abc import Iterable, Iterator, Mapping

from normscope.audit.expectations import Expectation
from normscope.audit.policy_expect import DTYPES, EXPECT_KEYS, GAINS, KINDS, PLACEMENTS
from normscope.audit.unmet import unmet
from normscope.inspection import Inspection

_SHARED_KEYS = tuple(key for key in EXPECT_KEYS if key not in {"norms", "stacks"})
_STACK_KEYS = tuple(key for key in _SHARED_KEYS if key not in {"final_norm", "embedding_norm"})
_IMPOSSIBLE: Mapping[str, object] = {
    "placement": "",
    "norm": "",
    "eps": -1.0,
    "gain": "",
    "statistics_dtype": "",
}
"""A value that no norm and no block has, for each fact that is not yes or no."""

Value = str | float | bool


def expect_today(inspection: Inspection) -> Expectation:
    """Return the facts that hold: of the model where its stacks share them, else of each stack.

    A fact holds where `unmet` finds nothing against it. What differs within a stack, what the
    target has nothing of, and what cannot be expected (an unknown placement) is left out.
    """
    values = {key: tuple(_values(key, inspection)) for key in _SHARED_KEYS}
    shared = {key: _held(key, values[key], inspection) for key in _SHARED_KEYS}
    open_keys = [key for key in _STACK_KEYS if shared[key] is None]
    stacks = {
        stack.path: _of_stack(stack.path, {key: values[key] for key in open_keys}, inspection)
        for stack in inspection.stacks
    }
    ends = {path: _held("final_norm", (True, False), inspection, path) for path in stacks}
    if len(set(ends.values())) > 1:
        stacks = {path: {**own, "final_norm": ends[path]} for path, own in stacks.items()}
    return Expectation(
        **shared,  # type: ignore[arg-type]
        norms=sum(norm.calls > 0 for norm in inspection.norms),
        stacks={
            path: Expectation(**own)  # type: ignore[arg-type]
            for path, own in stacks.items()
            if any(value is not None for value in own.values())
        },
    )


def _of_stack(
    path: str, values: Mapping[str, Iterable[Value]], inspection: Inspection
) -> dict[str, Value | None]:
    return {key: _held(key, each, inspection, path) for key, each in values.items()}


def _held(
    key: str, values: Iterable[Value], inspection: Inspection, path: str | None = None
) -> Value | None:
    """Return the value that holds for the model, or for a stack; None where all or none do."""
    holding = [value for value in values if _holds(key, value, inspection, path)]
    if key in _IMPOSSIBLE:
        looked_at = not _holds(key, _IMPOSSIBLE[key], inspection, path)
        return min(holding, key=lambda value: len(repr(value))) if holding and looked_at else None
    return holding[0] if len(holding) == 1 else None


def _holds(key: str, value: object, inspection: Inspection, path: str | None) -> bool:
    wanted = Expectation(**{key: value})  # type: ignore[arg-type]
    whole = wanted if path is None else Expectation(stacks={path: wanted})
    return next(unmet(inspection, whole), None) is None


def _values(key: str, inspection: Inspection) -> Iterator[Value]:
    """Yield what a fact may be here, each value once and in order of execution."""
    match key:
        case "placement":
            found = [inspection.placement, *(stack.placement for stack in inspection.stacks)]
            found += [block.placement for block in inspection.blocks]
            yield from _once((name.value for name in found), PLACEMENTS)
        case "norm":
            yield from _once((norm.kind for norm in inspection.norms), KINDS)
        case "gain":
            yield from _once((norm.gain for norm in inspection.norms), GAINS)
        case "statistics_dtype":
            yield from _once((norm.statistics_dtype for norm in inspection.norms), DTYPES)
        case "eps":
            numbers = dict.fromkeys(norm.eps for norm in inspection.norms)
            yield from (eps for eps in numbers if eps is not None and 0 <= eps < math.inf)
        case _:
            yield from (True, False)


def _once(found: Iterable[str | None], known: Iterable[str]) -> Iterator[str]:
    words = frozenset(known)
    yield from (each for each in dict.fromkeys(found) if each is not None and each in words)
