"""Norms of one graph -> the rows of the norm list."""

from collections import Counter
from collections.abc import Iterator, Sequence

from normscope.assembly.casts import cast_order, squares_in_half
from normscope.assembly.folding import Folding, foldings
from normscope.graph import Graph
from normscope.inspection import NormReport
from normscope.norms import Norm, find_norms
from normscope.placement.place import PlacedModel
from normscope.placement.vocabulary import Role


def norm_rows(
    graph: Graph, norms: Sequence[Norm], placed: PlacedModel, prefix: str
) -> tuple[NormReport, ...]:
    """Return one row a norm call, in order of execution, then those that never ran.

    `graph` is condensed; `prefix` is put before every path (a tower traced alone).
    """
    calls = Counter(norm.name for norm in norms)
    folds = foldings(graph, norms, {norm.output: placed.roles[norm.output].role for norm in norms})
    rows = [
        _row(graph, norm, calls[norm.name], placed, folds[norm.output], prefix) for norm in norms
    ]
    return (*rows, *_never_run(graph, prefix))


def _row(
    graph: Graph, norm: Norm, calls: int, placed: PlacedModel, fold: Folding, prefix: str
) -> NormReport:
    place = placed.roles[norm.output]
    return NormReport(
        name=joined(prefix, norm.name),
        module=None if norm.module is None else joined(prefix, norm.module),
        call=norm.call,
        calls=calls,
        role=place.role,
        block=None if place.block is None else joined(prefix, place.block),
        kind=norm.kind.value,
        axes=norm.axes,
        shape=norm.shape,
        groups=norm.groups,
        eps=norm.eps,
        eps_position=norm.eps_position.value,
        gain=norm.gain.value,
        bias=norm.bias,
        weight=None if norm.weight is None else joined(prefix, norm.weight),
        bias_name=None if norm.bias_name is None else joined(prefix, norm.bias_name),
        statistics_dtype=norm.statistics_dtype,
        gain_dtype=norm.gain_dtype,
        readers=tuple(joined(prefix, path) for path in fold.paths),
        foldable=fold.reason is None,
        foldable_reason=fold.reason,
        cast=cast_order(graph, norm),
        squares_in_half=squares_in_half(graph, norm),
    )


def joined(prefix: str, path: str) -> str:
    """Put a tower's path before a path below it."""
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _never_run(graph: Graph, prefix: str) -> Iterator[NormReport]:
    """Yield a row for each module that does nothing but normalize, and did not run."""
    for path, alone in graph.unrun.items():
        found = find_norms(alone)
        if len(found) != 1 or found[0].output not in alone.outputs:
            continue
        norm = found[0]
        yield NormReport(
            name=joined(prefix, path),
            module=joined(prefix, path),
            call=0,
            calls=0,
            role=Role.UNPLACED,
            block=None,
            kind=norm.kind.value,
            axes=norm.axes,
            shape=norm.shape,
            groups=norm.groups,
            eps=norm.eps,
            eps_position=norm.eps_position.value,
            gain=norm.gain.value,
            bias=norm.bias,
            weight=None if norm.weight is None else joined(prefix, f"{path}.{norm.weight}"),
            bias_name=(
                None if norm.bias_name is None else joined(prefix, f"{path}.{norm.bias_name}")
            ),
            statistics_dtype=norm.statistics_dtype,
            gain_dtype=norm.gain_dtype,
            readers=(),
            foldable=False,
            foldable_reason="never ran",
        )
