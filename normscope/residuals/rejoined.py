"""Residual adds that meet an earlier value of their own stream again.

The stream may be added twice, inside a module and around it, or as a position beside what a branch
reads.
"""

from collections.abc import Mapping
from dataclasses import replace

from normscope.graph import Graph
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.carried import carried_values, sums_behind
from normscope.residuals.steps import Step, StepKind, steps_back

_LINK_VALUES = 96
"""Values that a link between two adds may pass (window shifts, patch merging, streams stacked)."""


def without_side_inputs(graph: Graph, found: Mapping[int, ResidualAdd]) -> dict[int, ResidualAdd]:
    """Leave out sums that only prepare what a branch reads: the stream plus a position embedding.

    Where the embedding is an early value of the stream itself (SAM), the sum has the form of a long
    skip; but no later add goes on from it, and it ends in the branch of one.
    """
    going_on = {
        earlier for add in found.values() for earlier in sums_behind(graph, add.stream, found)
    }
    return {
        node: add
        for node, add in found.items()
        if node in going_on
        or not _carries_its_own_stream(graph, add, found)
        or not _reaches_any(graph, node, found)
    }


def _carries_its_own_stream(
    graph: Graph, add: ResidualAdd, found: Mapping[int, ResidualAdd]
) -> bool:
    """Tell whether the branch is a later sum of the stream that the skip is an early value of."""
    sums = _carried_sum(graph, add.branch, found)
    pending, seen = [] if sums is None else [sums], {sums}
    for current in pending:
        behind = carried_values(graph, found[current].stream, found)
        if add.stream in behind or found[current].stream == add.stream:
            return True
        for value in behind:
            if value in found and value not in seen and value > add.stream:
                seen.add(value)
                pending.append(value)
    return False


def _carried_sum(graph: Graph, value: int, found: Mapping[int, ResidualAdd]) -> int | None:
    for _ in range(_LINK_VALUES):
        if value in found:
            return value
        steps = [step for step in steps_back(graph, value) if step.kind is not StepKind.GATE]
        if len(steps) != 1:
            return None
        value = steps[0].value
    return None


def _reaches_any(graph: Graph, value: int, found: Mapping[int, ResidualAdd]) -> bool:
    last = max(found)
    pending, seen = [value], {value}
    for current in pending:
        for reader in graph.consumers[current]:
            if reader in found:
                return True
            if reader not in seen and reader < last:
                seen.add(reader)
                pending.append(reader)
    return False


def with_skips_counted(graph: Graph, found: Mapping[int, ResidualAdd]) -> dict[int, ResidualAdd]:
    """Take x + (x + f(x)) for one add with a skip of 2x.

    A module may add its input to what it returns, and the code that runs it once more.
    """
    counted = dict(found)
    for node, add in found.items():
        inner = _added_before(graph, add, found)
        if inner is not None:
            twice = Step(kind=StepKind.SCALE, node=node, value=add.stream, factor="2")
            counted[node] = replace(add, branch=inner.branch, steps=(*add.steps, twice))
            counted.pop(inner.node, None)
    return counted


def _added_before(
    graph: Graph, add: ResidualAdd, found: Mapping[int, ResidualAdd]
) -> ResidualAdd | None:
    """Return the add that the branch is, where nothing else reads its sum."""
    value = add.branch
    for _ in range(_LINK_VALUES):
        if len(graph.consumers[value]) != 1:
            return None
        inner = found.get(value)
        if inner is not None:
            plain = all(step.kind is StepKind.SAME for step in (*add.steps, *inner.steps))
            both = inner.stream == add.stream and plain and inner.sign == add.sign == "+"
            return inner if both else None
        steps = [*steps_back(graph, value)]
        if len(steps) != 1 or steps[0].kind is not StepKind.SAME:
            return None
        value = steps[0].value
    return None
