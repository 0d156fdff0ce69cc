"""Blocks of a stack -> the computations in them that no skip goes around.

Some blocks change the width and so leave the skip out (a strided block of MobileNet, the first
block of an audio encoder). What they compute is reported as `f(x)`, never hidden.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.operations import mixes
from normscope.placement.blocks import BlockKey
from normscope.placement.lists import is_within, stack_path
from normscope.placement.roles import carried_back
from normscope.residuals import Branch, ResidualStream
from normscope.residuals.adds import ResidualAdd
from normscope.residuals.ancestry import nodes_between
from normscope.residuals.branches import branch_entries, branch_tail
from normscope.residuals.kinds import branch_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SkiplessBranch:
    """A computation of a block that replaces the stream instead of adding to it."""

    block: BlockKey
    branch: Branch


def skipless_branches(
    graph: Graph, stream: ResidualStream, blocks: Mapping[int, BlockKey]
) -> tuple[SkiplessBranch, ...]:
    """Return the computations without a skip in blocks of stacks whose other blocks have one."""
    first_adds: dict[BlockKey, int] = {}
    for node, key in blocks.items():
        if key.listed:
            first_adds.setdefault(key, node)
    found = [*_before_first_add(graph, stream, first_adds), *_without_add(graph, blocks)]
    return tuple(found)


def _before_first_add(
    graph: Graph, stream: ResidualStream, first_adds: Mapping[BlockKey, int]
) -> Iterator[SkiplessBranch]:
    """Yield what stands on the stream between a block's input and its first residual add."""
    runs = _runs_by_path(graph)
    for key, node in first_adds.items():
        value = stream.adds[node].add.stream
        calls = runs.get(key.path, [])
        if key.run >= len(calls):
            continue
        replaced = any(
            mixes(graph.nodes[index].operation) and is_within(graph.nodes[index].module, key.path)
            for index in carried_back(graph, value, stream)
        )
        branch = _branch(graph, calls[key.run], value, frozenset(stream.adds)) if replaced else None
        if branch is not None:
            yield SkiplessBranch(block=key, branch=branch)


def _without_add(graph: Graph, blocks: Mapping[int, BlockKey]) -> Iterator[SkiplessBranch]:
    """Yield the blocks of a stack that have no residual add at all."""
    stacks = {stack_path(key.path) for key in blocks.values() if key.listed}
    known = {key.path for key in blocks.values()}
    classes = {graph.modules[path].class_name for path in known if path in graph.modules}
    runs = _runs_by_path(graph)
    for path, module in graph.modules.items():
        outer = graph.modules.get(path.rpartition(".")[0])
        alike = module.class_name in classes and outer is not None and outer.is_list
        if not alike or path in known or stack_path(path) not in stacks:
            continue
        for run, call in enumerate(runs.get(path, [])):
            outputs = graph.calls[call].outputs
            branch = _branch(graph, call, outputs[0], frozenset(blocks)) if outputs else None
            if branch is not None:
                yield SkiplessBranch(block=BlockKey(path=path, run=run, listed=True), branch=branch)


def _runs_by_path(graph: Graph) -> dict[str, list[int]]:
    runs: dict[str, list[int]] = {}
    for index, call in enumerate(graph.calls):
        runs.setdefault(call.path, []).append(index)
    return runs


def _branch(graph: Graph, call: int, output: int, sums: frozenset[int]) -> Branch | None:
    """Build the branch from the block's input to a value, if a mixing operation lies between."""
    for start in graph.calls[call].inputs:
        nodes = nodes_between(graph, start, output) if start < output else frozenset[int]()
        if any(mixes(graph.nodes[index].operation) for index in nodes):
            add = ResidualAdd(node=output, stream=start, skip=start, branch=output, steps=())
            entries = branch_entries(graph, add, nodes)
            return Branch(
                add=add,
                output=output,
                nodes=nodes,
                kind=branch_kind(graph, start, nodes, tuple(entry.node for entry in entries), sums),
                entries=entries,
                tail=branch_tail(graph, add, output, nodes),
            )
    return None
