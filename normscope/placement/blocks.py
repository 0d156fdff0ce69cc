"""Residual adds -> the block that each one belongs to."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.operations import mixes
from normscope.placement.lists import block_path, homogeneous_elements, is_within
from normscope.residuals import ResidualStream, StreamAdd
from normscope.residuals.carried import carried_values


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKey:
    """One run of one block."""

    path: str
    run: int
    """0 for the block's first run, 1 for its second, …"""
    listed: bool
    """Whether the block is an element of a list, and so of a stack."""


def assign_blocks(graph: Graph, stream: ResidualStream) -> dict[int, BlockKey]:
    """Return the block of each residual add, by the index of its sum."""
    paths = {node: _own_block(graph, add) for node, add in stream.adds.items()}
    inner = _modules_inside(graph, stream)
    for call, nodes in _by_owner_call(graph, stream).items():
        owner = graph.calls[call].path
        # A sum around whole blocks of the owner is no block of their list.
        single = [
            node
            for node in nodes
            if not any(is_within(path, owner) for path in inner.get(node, ()))
        ]
        paths |= _blocks_run_by_parent(graph, stream, owner, single)
    paths |= _joined_without_list(graph, stream, paths)
    return _numbered(graph, stream, paths)


def _own_block(graph: Graph, add: StreamAdd) -> tuple[str, bool]:
    owner = graph.nodes[add.add.node].module
    found = block_path(graph, owner) if owner else None
    return (owner, False) if found is None else (found, True)


def _by_owner_call(graph: Graph, stream: ResidualStream) -> Mapping[int, list[int]]:
    calls: dict[int, list[int]] = defaultdict(list)
    for node in stream.adds:
        calls[graph.nodes[node].call].append(node)
    return calls


def _modules_inside(graph: Graph, stream: ResidualStream) -> Mapping[int, list[str]]:
    """Return for each sum around others the modules that these are written in."""
    inner: dict[int, list[str]] = defaultdict(list)
    for node, add in stream.adds.items():
        if add.parent is not None:
            inner[add.parent].append(graph.nodes[node].module)
    return inner


def _blocks_run_by_parent(
    graph: Graph, stream: ResidualStream, owner: str, nodes: list[int]
) -> dict[int, tuple[str, bool]]:
    """Place adds that a parent writes for its children: `x = x + layer(norm(x))` in a loop.

    The branches then lie in elements of lists below the parent. Sibling lists that run in turn
    (XLM: attentions, ffns) are one stack, named by the list whose element runs first.
    """
    elements = {node: _branch_element(graph, stream.adds[node], owner) for node in nodes}
    listed = {node: element for node, element in elements.items() if element is not None}
    lists = {element.rpartition(".")[0] for element in listed.values()}
    several = any(
        len({element for element in listed.values() if element.rpartition(".")[0] == path}) > 1
        for path in lists
    )
    within = bool(owner) and (
        bool(homogeneous_elements(graph, owner))
        or (not several and block_path(graph, owner) is not None)
    )
    if within:
        return {}
    first_of_index: dict[str, str] = {}
    placed: dict[int, tuple[str, bool]] = {}
    for node, element in listed.items():
        index = element.rpartition(".")[2]
        first = first_of_index.setdefault(index, element)
        same_length = len(graph.modules[first.rpartition(".")[0]].children) == len(
            graph.modules[element.rpartition(".")[0]].children
        )
        placed[node] = (first if same_length else element, True)
    return placed


def _branch_element(graph: Graph, add: StreamAdd, owner: str) -> str | None:
    """Return the list element below `owner` that the branches' mixing operations lie in.

    Where they lie in elements of one index of sibling lists, it is the first that runs.
    """
    modules = [
        graph.nodes[index].module
        for branch in add.branches
        for index in sorted(branch.own)
        if mixes(graph.nodes[index].operation)
    ]
    elements = [_outermost_element(graph, path, owner) for path in modules]
    # What the owner prepares from another stream belongs to the block of the element that reads it.
    entries = [
        _outermost_element(graph, graph.nodes[entry.node].module, owner)
        for branch in add.branches
        for entry in branch.entries
    ]
    if not elements or None in {elements[-1], *entries}:
        return None
    listed = [element for element in elements if element is not None]
    indices = {element.rpartition(".")[2] for element in listed}
    return listed[0] if len(indices) == 1 else None


def _outermost_element(graph: Graph, path: str, owner: str) -> str | None:
    """Return what the owner loops over around `path`, and not a list inside its element."""
    elements = [
        element
        for element in homogeneous_elements(graph, path)
        if is_within(element, owner) and element != owner
    ]
    return elements[-1] if elements else None


def _joined_without_list(
    graph: Graph, stream: ResidualStream, paths: Mapping[int, tuple[str, bool]]
) -> dict[int, tuple[str, bool]]:
    """Join adds outside of lists whose owners lie in each other into one block."""
    joined: dict[int, tuple[str, bool]] = {}
    for node, add in stream.adds.items():
        own, listed = joined.get(node, paths[node])
        if listed:
            continue
        for earlier in add.previous:
            other, other_listed = joined.get(earlier, paths[earlier])
            if other_listed or "" in {own, other} or own == other:
                continue
            if is_within(other, own):
                joined[earlier] = (own, False)
            elif is_within(own, other):
                own = other
        joined[node] = (own, False)
    return joined


def _numbered(
    graph: Graph, stream: ResidualStream, paths: Mapping[int, tuple[str, bool]]
) -> dict[int, BlockKey]:
    keys: dict[int, BlockKey] = {}
    runs: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for node in stream.adds:
        path, listed = paths[node]
        call = _enclosing_call(graph, graph.nodes[node].call, path)
        if (path, call) not in runs:
            runs[path, call] = counts.get(path, 0)
            counts[path] = runs[path, call] + 1
        keys[node] = BlockKey(path=path, run=runs[path, call], listed=listed)
    return keys


def _enclosing_call(graph: Graph, call: int, path: str) -> int:
    """Return the run of the module at `path` around a call.

    Where the module was run by its forward alone, or the parent wrote the add, it is the run of the
    parent that stands for it.
    """
    current: int | None = call
    while current is not None:
        found = graph.calls[current]
        if found.path == path or not is_within(found.path, path):
            return current
        current = found.parent
    return call


def is_computed_in(graph: Graph, value: int, path: str, stream: ResidualStream) -> bool:
    """Tell whether a block computed what a value carries on, instead of being handed it."""
    return any(
        mixes(graph.nodes[index].operation) and is_within(graph.nodes[index].module, path)
        for index in carried_values(graph, value, stream.adds)
    )
