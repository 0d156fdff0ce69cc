"""module + inputs + norms -> which token each row of each norm belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from normscope.activations.layouts import Extent, RowLayout, find_layout
from normscope.activations.streams import DECODER, Inputs, TokenStream, resized, token_streams
from normscope.errors import NormscopeError
from normscope.graph import Graph, Origin
from normscope.norms import Norm, find_norms
from normscope.tracing import trace_module


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """The tokens that a norm's rows belong to."""

    stream: str
    """`encoder` or `decoder` where a model has tokens on both sides."""
    layout: RowLayout | None
    """None where its rows are no tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One token stream, and the nodes that its input reaches."""

    name: str
    extent: Extent
    reaches: Sequence[bool]


_Run = tuple[tuple[int, ...], Extent]
"""Shape of a norm's rows, and the sizes of its tokens, in one forward pass."""


def find_token_rows(
    module: nn.Module, inputs: Inputs, graph: Graph, norms: Sequence[Norm]
) -> tuple[TokenRows, ...]:
    """Return where the rows of each norm belong; `graph` is the trace of these inputs.

    Where sizes coincide (as many heads as tokens), the model is traced once more on small inputs.
    """
    streams = token_streams(module, inputs)
    sides = _sides(graph, streams)
    first = [_observed(graph, norm, sides) for norm in norms]
    layouts = [find_layout([run]) if run is not None else () for run in first]
    if any(_is_open(found) for found in layouts):
        second = _second_run(module, inputs, streams)
        layouts = [
            _decided(found, run, second.get((norm.name, norm.call)))
            for found, run, norm in zip(layouts, first, norms, strict=True)
        ]
    return tuple(
        TokenRows(stream=_side_name(norm, sides), layout=found[0] if found else None)
        for norm, found in zip(norms, layouts, strict=True)
    )


def _is_open(layouts: Sequence[RowLayout]) -> bool:
    """Tell whether one run is no proof: several fit, or what fits may be a coincidence."""
    return len(layouts) > 1 or any(layout.has_rows for layout in layouts)


def _decided(
    layouts: tuple[RowLayout, ...], first: _Run | None, second: _Run | None
) -> tuple[RowLayout, ...]:
    if first is None or not _is_open(layouts):
        return layouts
    if second is not None:
        return find_layout([first, second])
    # Without a second run, only what has one reading is believed.
    return layouts if len(layouts) == 1 and not layouts[0].is_folded else ()


def _sides(graph: Graph, streams: Sequence[TokenStream]) -> list[_Side]:
    """Return the streams, the decoder's first: what its tokens reach belongs to it."""
    sides = [
        _Side(name=stream.name, extent=stream.extent, reaches=_reached(graph, stream.source))
        for stream in streams
    ]
    return sorted(sides, key=lambda side: side.name != DECODER)


def _reached(graph: Graph, name: str) -> Sequence[bool]:
    known: list[bool] = []
    for node in graph.nodes:
        starts = node.origin is Origin.INPUT and node.name == name
        known.append(starts or any(known[operand] for operand in node.operands))
    return known


def _side_of(norm: Norm, sides: Sequence[_Side]) -> _Side | None:
    return next((side for side in sides if side.reaches[norm.input]), None)


def _side_name(norm: Norm, sides: Sequence[_Side]) -> str:
    found = _side_of(norm, sides)
    return found.name if found is not None else ""


def _observed(graph: Graph, norm: Norm, sides: Sequence[_Side]) -> _Run | None:
    side = _side_of(norm, sides)
    shape = _rows_shape(graph.nodes[norm.input].shape, norm)
    return None if side is None or shape is None else (shape, side.extent)


def _rows_shape(shape: Sequence[int], norm: Norm) -> tuple[int, ...] | None:
    """Return the shape of what remains when the norm's axes are reduced; groups come last."""
    if len(norm.axes) > len(shape):
        return None
    reduced = {axis % len(shape) for axis in norm.axes}
    kept = tuple(size for axis, size in enumerate(shape) if axis not in reduced)
    return (*kept, norm.groups) if norm.groups else kept


def _second_run(
    module: nn.Module, inputs: Inputs, streams: tuple[TokenStream, ...]
) -> Mapping[tuple[str, int], _Run]:
    """Return what each norm shows on inputs of another size; nothing where those do not run."""
    smaller = resized(inputs, streams)
    try:
        graph = trace_module(module, smaller.keywords, smaller.positional)
    except NormscopeError:
        return {}
    sides = _sides(graph, token_streams(module, smaller))
    runs = {(norm.name, norm.call): _observed(graph, norm, sides) for norm in find_norms(graph)}
    return {key: run for key, run in runs.items() if run is not None}
