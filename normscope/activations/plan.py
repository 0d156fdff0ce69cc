"""module + inputs -> which values to read, and how their rows fall on tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from normscope.activations.formula import StoredStatistics, stored_statistics
from normscope.activations.streams import Inputs, told_apart
from normscope.activations.taps import (
    ModuleTap,
    Tap,
    runs_one_operation,
    tap_input,
    tap_output,
)
from normscope.activations.token_rows import TokenRows, find_token_rows
from normscope.activations.views import RowView, input_view, output_view
from normscope.graph import Graph
from normscope.norms import Norm, condense_norms, find_norms
from normscope.placement.place import PlacedNorm, place_norms
from normscope.placement.vocabulary import Role
from normscope.residuals import find_stream
from normscope.statistics import NormStatistics
from normscope.tracing import trace_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One value to read, and the axes that its rows are reduced over."""

    tap: Tap
    axes: tuple[int, ...]
    groups: int | None
    late: bool = False
    """What goes into a module may be read when it has run: nothing in it can change the value."""

    @property
    def is_by_features(self) -> bool:
        """Whether the rows are those of the last axis, as the value lies there."""
        return self.axes == (-1,) and not self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class NormPlan:
    """What is read of one norm call; `before` and `after` index `Plan.readings`."""

    norm: Norm
    role: Role
    block: str | None
    before: int | None
    after: int | None
    rows: TokenRows
    stored_statistics: StoredStatistics | None = None
    """What a norm with frozen statistics normalizes by, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that one forward pass is watched for."""

    readings: tuple[Reading, ...]
    norms: tuple[NormPlan, ...]
    idle: tuple[NormStatistics, ...]
    """Norms that were built and never ran: there is nothing to read of them."""


def plan_measurement(module: nn.Module, inputs: Inputs, *, as_it_is: bool = False) -> Plan:
    """Trace one forward pass with these inputs and decide what to read.

    With `as_it_is` neither eval mode nor the absence of gradients is imposed on it. Raises
    `NormscopeError` of kind `trace_failed` where the forward fails.
    """
    inputs = told_apart(inputs)
    graph = trace_module(module, inputs.keywords, inputs.positional, as_it_is=as_it_is)
    norms = find_norms(graph)
    roles = _roles(graph, norms)
    rows = find_token_rows(module, inputs, graph, norms)
    readings: dict[RowView, Reading] = {}
    plans = tuple(
        NormPlan(
            norm=norm,
            role=roles[norm.output].role if norm.output in roles else Role.UNPLACED,
            block=roles[norm.output].block if norm.output in roles else None,
            before=_before(graph, norm, readings),
            after=_after(graph, norm, readings),
            rows=found,
            stored_statistics=stored_statistics(graph, norm),
        )
        for norm, found in zip(norms, rows, strict=True)
    )
    return Plan(
        readings=tuple(readings.values()),
        norms=plans,
        idle=tuple(_idle(graph)),
    )


def _roles(graph: Graph, norms: Sequence[Norm]) -> Mapping[int, PlacedNorm]:
    condensed = condense_norms(graph, norms)
    return place_norms(condensed, norms, find_stream(condensed)).roles


def _before(graph: Graph, norm: Norm, readings: dict[RowView, Reading]) -> int | None:
    view, tap = input_view(norm), tap_input(graph, norm)
    late = isinstance(tap, ModuleTap) and runs_one_operation(graph, norm)
    return _wanted(view, tap, readings, late=late)


def _after(graph: Graph, norm: Norm, readings: dict[RowView, Reading]) -> int | None:
    view = output_view(graph, norm)
    return None if view is None else _wanted(view, tap_output(graph, view.node, norm), readings)


def _wanted(
    view: RowView, tap: Tap | None, readings: dict[RowView, Reading], *, late: bool = False
) -> int | None:
    """Return the index of a reading; norms that read the same value share one."""
    if tap is None:
        return None
    if view not in readings:
        readings[view] = Reading(tap=tap, axes=view.axes, groups=view.groups, late=late)
    return list(readings).index(view)


def _idle(graph: Graph) -> Iterator[NormStatistics]:
    """Yield the modules that do nothing but normalize and did not run."""
    for path, alone in graph.unrun.items():
        found = find_norms(alone)
        if len(found) == 1 and found[0].output in alone.outputs:
            yield NormStatistics(
                name=path,
                call=0,
                role=Role.UNPLACED,
                kind=found[0].kind.value,
                rows_per_token=None,
                problem="it was built and never ran",
            )
