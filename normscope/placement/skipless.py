"""Blocks of a stack -> the computations in them that no skip goes around.

Some blocks change the width and so leave the skip out (a strided block of MobileNet, the first
block of an audio encoder). What they compute is reported as `f(x)`, never hidden.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.operations import mixes
from normscope.placement.blocks import BlockKey, is_computed_in
from normscope.placement.lists import stack_path
from normscope.residuals import Branch, ResidualStream
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.ancestry import nodes_between
from normscope.residuals.branches import branch_entries, branch_tail
from normscope.residuals.kinds import branch_kind, own_nodes
from normscope.residuals.steps import is_activation


@dataclass(frozen=True, slots=True, kw_only=True)
class SkiplessBranch:
    """A computation of a block that replaces the stream instead of adding to it."""

    block: BlockKey
    branch: Branch


def skipless_branches(
    graph: Graph, stream: ResidualStream, blocks: Mapping[int, BlockKey]
) -> tuple[SkiplessBranch, ...]:
    """Return the computations without a skip in blocks of stacks whose other blocks have one."""
    adds: dict[BlockKey, list[int]] = {}
    for node, key in blocks.items():
        if key.listed:
            adds.setdefault(key, []).append(node)
    entering = _without_transitions(graph, list(_before_adds(graph, stream, adds)), adds)
    return (*entering, *_without_add(graph, blocks))


def adds_inside(
    stream: ResidualStream, blocks: Mapping[int, BlockKey], found: Sequence[SkiplessBranch]
) -> set[int]:
    """Return the lone adds inside a computation without a skip: as inside a branch, no stream."""
    going_on = {earlier for add in stream.adds.values() for earlier in add.previous}
    return {
        node
        for node, add in stream.adds.items()
        if not add.previous
        and node not in going_on
        and any(
            item.block == blocks[node] and node in item.branch.nodes and node != item.branch.output
            for item in found
        )
    }


def _before_adds(
    graph: Graph, stream: ResidualStream, adds: Mapping[BlockKey, Sequence[int]]
) -> Iterator[SkiplessBranch]:
    """Yield what replaces the stream between a block's input, or its last sum, and an add."""
    runs = _runs_by_path(graph)
    for key, nodes in adds.items():
        calls = runs.get(key.path, [])
        if key.run >= len(calls):
            continue
        inputs = graph.calls[calls[key.run]].inputs
        for position, node in enumerate(nodes):
            value = stream.adds[node].add.stream
            if not is_computed_in(graph, value, key.path, stream):
                continue
            starts = (*reversed(nodes[:position]), *inputs)
            branch = _branch(graph, starts, value, frozenset(stream.adds))
            if branch is not None:
                yield SkiplessBranch(block=key, branch=branch)


def _without_transitions(
    graph: Graph,
    found: Sequence[SkiplessBranch],
    adds: Mapping[BlockKey, Sequence[int]],
) -> list[SkiplessBranch]:
    """Leave out what every block of a stack does first to change the shape of its stream."""
    counts = Counter(stack_path(path) for path in {key.path for key in adds})
    stacks = {stack for stack, count in counts.items() if count > 1}
    uniform = {
        stack
        for stack in stacks
        if {key for key in adds if stack_path(key.path) == stack}
        <= {item.block for item in found if _changes_shape(graph, item)}
    }
    return [
        item
        for item in found
        if stack_path(item.block.path) not in uniform or not _changes_shape(graph, item)
    ]


def _changes_shape(graph: Graph, item: SkiplessBranch) -> bool:
    add = item.branch.add
    return graph.nodes[add.stream].shape != graph.nodes[add.node].shape


def _without_add(graph: Graph, blocks: Mapping[int, BlockKey]) -> Iterator[SkiplessBranch]:
    """Yield the blocks of a stack that have no residual add at all."""
    stacks = {stack_path(key.path) for key in blocks.values() if key.listed}
    known = {key.path for key in blocks.values()}
    classes = {graph.modules[path].class_name for path in known if path in graph.modules}
    runs = _runs_by_path(graph)
    for path, module in graph.modules.items():
        outer = graph.modules.get(path.rpartition(".")[0])
        listed = outer is not None and outer.is_list
        if not listed or path in known or stack_path(path) not in stacks:
            continue
        for run, call in enumerate(runs.get(path, [])):
            outputs = graph.calls[call].outputs
            inputs = graph.calls[call].inputs
            branch = _branch(graph, inputs, outputs[0], frozenset(blocks)) if outputs else None
            alike = module.class_name in classes
            if branch is not None and (alike or _is_more_than_a_projection(graph, branch)):
                yield SkiplessBranch(block=BlockKey(path=path, run=run, listed=True), branch=branch)


def _is_more_than_a_projection(graph: Graph, branch: Branch) -> bool:
    """Tell a block of another kind in a list (LeViT's subsampling) from a convolution between."""
    stored = [
        index
        for index in branch.own
        if mixes(graph.nodes[index].operation)
        and any(not is_activation(graph, operand) for operand in graph.nodes[index].operands)
    ]
    return len(stored) > 1


def _runs_by_path(graph: Graph) -> dict[str, list[int]]:
    runs: dict[str, list[int]] = {}
    for index, call in enumerate(graph.calls):
        runs.setdefault(call.path, []).append(index)
    return runs


def _branch(
    graph: Graph, starts: Sequence[int], output: int, sums: frozenset[int]
) -> Branch | None:
    """Build the branch to a value from the first start with a mixing operation between."""
    for start in starts:
        nodes = nodes_between(graph, start, output) if start < output else frozenset[int]()
        if any(mixes(graph.nodes[index].operation) for index in nodes):
            add = ResidualAdd(node=output, stream=start, skip=start, branch=output, steps=())
            entries = branch_entries(graph, add, nodes)
            return Branch(
                add=add,
                output=output,
                nodes=nodes,
                own=own_nodes(graph, nodes, sums),
                kind=branch_kind(graph, start, nodes, tuple(entry.node for entry in entries), sums),
                entries=entries,
                tail=branch_tail(graph, add, output, nodes),
            )
    return None
