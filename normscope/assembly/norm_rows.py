"""Norms of one graph -> the rows of the norm list."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from normscope.graph import Graph, Node
from normscope.inspection import NormReport
from normscope.norms import Gain, Norm, NormKind, find_norms
from normscope.operations import CONVOLUTIONS, MATRIX_PRODUCTS
from normscope.placement.place import PlacedModel
from normscope.placement.vocabulary import Role
from normscope.residuals.steps import StepKind, is_activation, steps_back

_READER_VALUES = 64


def norm_rows(
    graph: Graph, norms: Sequence[Norm], placed: PlacedModel, prefix: str
) -> tuple[NormReport, ...]:
    """Return one row a norm call, in order of execution, then those that never ran.

    `graph` is condensed; `prefix` is put before every path (a tower traced alone).
    """
    calls = Counter(norm.name for norm in norms)
    rows = [_row(graph, norm, calls[norm.name], placed, prefix) for norm in norms]
    return (*rows, *_never_run(graph, prefix))


def _row(graph: Graph, norm: Norm, calls: int, placed: PlacedModel, prefix: str) -> NormReport:
    place = placed.roles[norm.output]
    readers = _readers(graph, norm.output)
    reason = _unfoldable(graph, norm, place.role, readers)
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
        readers=tuple(joined(prefix, path) for path in _paths(graph, readers)),
        foldable=reason is None,
        foldable_reason=reason,
    )


def joined(prefix: str, path: str) -> str:
    """Put a tower's path before a path below it."""
    return f"{prefix}.{path}" if prefix and path else prefix or path


def _readers(graph: Graph, value: int) -> list[Node]:
    """Return the operations that read a value, behind its views, casts and dropout."""
    pending, found = [value], dict[int, Node]()
    for current in pending:
        for index in graph.consumers[current]:
            reader = graph.nodes[index]
            kept = len(pending) < _READER_VALUES and any(
                step.value == current and step.kind is StepKind.SAME
                for step in steps_back(graph, index)
            )
            if kept:
                pending.append(index)
            else:
                found.setdefault(index, reader)
    return sorted(found.values(), key=lambda node: node.index)


def _paths(graph: Graph, readers: Iterable[Node]) -> tuple[str, ...]:
    """Return the modules of the readers; a product belongs to the module of its weight."""
    return tuple(dict.fromkeys(_owner(graph, node) for node in readers))


def _owner(graph: Graph, node: Node) -> str:
    weight = _stored_weight(graph, node)
    return node.module if weight is None else weight.name.rpartition(".")[0]


def _stored_weight(graph: Graph, node: Node) -> Node | None:
    """Return the parameter that a product or convolution reads, behind its views."""
    for operand in node.operands:
        current = graph.nodes[operand]
        while len(current.operands) == 1 and not is_activation(graph, current.index):
            current = graph.nodes[current.operands[0]]
        if current.name and not is_activation(graph, operand):
            return current
    return None


def _is_linear(graph: Graph, node: Node) -> bool:
    product = node.operation in MATRIX_PRODUCTS or node.operation in CONVOLUTIONS
    return product and _stored_weight(graph, node) is not None


def _unfoldable(graph: Graph, norm: Norm, role: Role, readers: Sequence[Node]) -> str | None:
    """Return why the gain cannot be folded into what reads the norm, or None."""
    checks: Sequence[tuple[bool, str]] = (
        (norm.gain is Gain.NONE, "no gain"),
        (role is Role.TRUNK, "trunk"),
        (role is Role.BRANCH_OUTPUT, "branch output"),
        (norm.output in graph.outputs or not readers, "returned by the model"),
        (
            role in {Role.EMBEDDING, Role.STACK_INPUT, Role.BETWEEN_STACKS}
            and not all(_is_linear(graph, node) for node in readers),
            "the stream carries it",
        ),
        (not all(_is_linear(graph, node) for node in readers), "a reader is not linear"),
        (norm.bias, "has a bias"),
        (norm.kind is NormKind.LAYER, "needs centring"),
    )
    return next((reason for holds, reason in checks if holds), None)


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
