"""Residual add -> its branches: the parallel parts of one sum, and what each computes."""

from dataclasses import dataclass, replace

from normscope.graph import Graph, Node
from normscope.operations import NORMALIZE, mixes
from normscope.residuals.adds import ResidualAdd, only_mixes_streams
from normscope.residuals.ancestry import nodes_between
from normscope.residuals.kinds import BranchKind, branch_kind, own_nodes
from normscope.residuals.steps import Step, StepKind, is_activation, steps_back

_OUTPUT_STEPS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A first mixing operation of a branch, and the norms between the stream and it."""

    node: int
    norms: frozenset[int]
    bare: bool
    """Whether some path from the stream to it passes no norm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch between a stream value and a residual add."""

    add: ResidualAdd
    output: int
    """Its last value: an operand of the sum, or of a sum of parallel branches."""
    nodes: frozenset[int]
    """All nodes on the way from the stream (left out) to `output`."""
    own: frozenset[int]
    """Those of them that no other residual add on the way computed."""
    kind: BranchKind
    entries: tuple[Entry, ...]
    tail: tuple[Step, ...]
    """The steps from the add back to the branch's last computation."""
    parallel: bool = False
    """Whether another branch reads the same stream value and ends in the same chain of adds."""


def branches_of(graph: Graph, add: ResidualAdd, sums: frozenset[int]) -> tuple[Branch, ...]:
    """Return the branches that one residual add sums up, in order of execution.

    `sums` are all residual sums of the graph: what is read from another stream is told by them.
    """
    nodes = nodes_between(graph, add.stream, add.branch)
    outputs = _parallel_outputs(graph, add, nodes, sums)
    if len(outputs) == 1:
        return (_branch(graph, add, outputs[0], nodes, sums),)
    return tuple(
        _branch(graph, add, output, nodes_between(graph, add.stream, output), sums)
        for output in sorted(outputs)
    )


def _branch(
    graph: Graph, add: ResidualAdd, output: int, nodes: frozenset[int], sums: frozenset[int]
) -> Branch:
    own = own_nodes(graph, nodes, sums)
    entries = branch_entries(graph, add, nodes)
    # What another stream begins with where the two part is no entry of this branch.
    entries = tuple(entry for entry in entries if entry.node in own) or entries
    entries = _without_side_entries(graph, entries, own)
    kind = branch_kind(graph, add.stream, nodes, tuple(entry.node for entry in entries), sums)
    return Branch(
        add=add,
        output=output,
        nodes=nodes,
        own=own,
        kind=BranchKind.OTHER if only_mixes_streams(graph, add) else kind,
        entries=entries,
        tail=branch_tail(graph, add, output, nodes),
    )


def _parallel_outputs(
    graph: Graph, add: ResidualAdd, nodes: frozenset[int], sums: frozenset[int], depth: int = 0
) -> list[int]:
    """Split a branch that is itself a sum, written where the residual add is, into its addends.

    A sum inside a deeper module (routed and shared experts) is part of one branch; so is a sum of
    two computations of one kind, and with it any sum of more parts than there are kinds.
    """
    node = _summing(graph, add, add.branch, nodes) if depth < len(BranchKind) else None
    if node is None:
        return [add.branch]
    parts = [
        part
        for operand in node.operands
        for part in _parallel_outputs(
            graph,
            _with_branch(add, operand),
            nodes_between(graph, add.stream, operand),
            sums,
            depth + 1,
        )
    ]
    kinds = [_kind_of_part(graph, add, part, sums) for part in parts]
    # A shared expert beside the routed ones is part of one mixture.
    groups = {BranchKind.MOE if kind is BranchKind.MLP else kind for kind in kinds}
    return parts if len(groups) == len(kinds) else [add.branch]


def _with_branch(add: ResidualAdd, operand: int) -> ResidualAdd:
    return ResidualAdd(
        node=add.node, stream=add.stream, skip=add.skip, branch=operand, steps=add.steps
    )


def _kind_of_part(graph: Graph, add: ResidualAdd, part: int, sums: frozenset[int]) -> BranchKind:
    nodes = nodes_between(graph, add.stream, part)
    entries = branch_entries(graph, add, nodes)
    return branch_kind(graph, add.stream, nodes, tuple(entry.node for entry in entries), sums)


def _summing(graph: Graph, add: ResidualAdd, output: int, nodes: frozenset[int]) -> Node | None:
    """Return the sum of two mixed values that `output` carries, if the add's own module made it."""
    for _ in range(_OUTPUT_STEPS):
        node = graph.nodes[output]
        if node.operation == "add" and len(node.operands) == 2:
            own = node.call == graph.nodes[add.node].call
            both = all(
                operand in nodes and is_activation(graph, operand) for operand in node.operands
            )
            if both:
                mixed = all(
                    _mixed_inside(graph, nodes_between(graph, add.stream, operand))
                    for operand in node.operands
                )
                return node if own and mixed else None
        steps = [
            step
            for step in steps_back(graph, output)
            if step.kind in {StepKind.SAME, StepKind.SCALE} and step.value in nodes
        ]
        if len(steps) != 1:
            return None
        output = steps[0].value
    return None


def _mixed_inside(graph: Graph, nodes: frozenset[int]) -> bool:
    return any(mixes(graph.nodes[index].operation) for index in nodes)


def branch_entries(graph: Graph, add: ResidualAdd, nodes: frozenset[int]) -> tuple[Entry, ...]:
    """Walk forward from the stream to the first mixing operations, noting the norms passed."""
    norms: dict[int, frozenset[int]] = {add.stream: frozenset()}
    bare: dict[int, bool] = {add.stream: True}
    entries: list[Entry] = []
    for index in sorted(nodes):
        node = graph.nodes[index]
        sources = [operand for operand in node.operands if operand in norms]
        if not sources:
            continue
        passed = frozenset().union(*(norms[source] for source in sources))
        open_path = any(bare[source] for source in sources)
        if mixes(node.operation):
            entries.append(Entry(node=index, norms=passed, bare=open_path))
            continue
        is_norm = node.operation == NORMALIZE
        norms[index] = passed | {index} if is_norm else passed
        bare[index] = open_path and not is_norm
    return tuple(entries)


def _without_side_entries(
    graph: Graph, entries: tuple[Entry, ...], own: frozenset[int]
) -> tuple[Entry, ...]:
    """Leave out the normalized entries that only prepare what the others read beside the stream.

    The queries of SAM 3's detector get a position that was computed from their normalized values.
    """
    direct = tuple(entry for entry in entries if entry.bare)
    nodes = {entry.node for entry in direct}
    if not direct or any(
        not entry.bare and not _ends_in(graph, entry.node, nodes, own) for entry in entries
    ):
        return entries
    return direct


def _ends_in(graph: Graph, start: int, ends: set[int], own: frozenset[int]) -> bool:
    """Tell whether every way from a node through the branch passes one of `ends`."""
    pending, seen = [start], {start}
    for value in pending:
        readers = [index for index in graph.consumers[value] if index in own]
        if not readers:
            return False
        for index in readers:
            if index not in ends and index not in seen:
                seen.add(index)
                pending.append(index)
    return True


def branch_tail(
    graph: Graph, add: ResidualAdd, output: int, nodes: frozenset[int]
) -> tuple[Step, ...]:
    """Walk back from the add through casts, views, scales, gates and norms."""
    steps: list[Step] = []
    for _ in range(_OUTPUT_STEPS):
        if mixes(graph.nodes[output].operation):
            break
        found = [
            step
            for step in (*steps_back(graph, output), *_towards(graph, add, output))
            if step.value in nodes
        ]
        gates = [step for step in found if step.kind is StepKind.GATE]
        if gates and len(found) > 1:
            # A product of two values of the branch is a computation, not a scale.
            break
        if len(found) > 1:
            whole = _taken_apart(graph, found, nodes)
            found = [] if whole is None else [replace(found[0], value=whole)]
        if not found:
            break
        steps.append(found[0])
        output = found[0].value
    return tuple(steps)


def _taken_apart(graph: Graph, pieces: list[Step], nodes: frozenset[int]) -> int | None:
    """Return the one value of the branch whose pieces a value is put together from.

    Funnel repeats each token but the first to the length of its decoder.
    """
    values = {step.value for step in pieces}
    for _ in range(_OUTPUT_STEPS):
        if len(values) == 1:
            return values.pop()
        last = max(values)
        behind = [*steps_back(graph, last)]
        if not behind or any(
            step.kind is not StepKind.SAME or step.value not in nodes for step in behind
        ):
            return None
        values = values - {last} | {step.value for step in behind}
    return None


def _towards(graph: Graph, add: ResidualAdd, output: int) -> list[Step]:
    """In x + a·(y - x) the branch moves towards y: step over the difference."""
    node = graph.nodes[output]
    if node.operation == "sub" and len(node.operands) == 2 and node.operands[1] == add.stream:
        return [Step(kind=StepKind.SCALE, node=output, value=node.operands[0], factor="")]
    return []
