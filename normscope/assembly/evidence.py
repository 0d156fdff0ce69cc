"""One placed branch -> the chain of operations that proves its verdict."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from normscope.graph import Graph, Node
from normscope.inspection import Evidence
from normscope.norms import Norm
from normscope.placement.sites import PlacedBranch
from normscope.placement.vocabulary import Site

_SHOWN_ENTRIES = 6


def evidence_of(
    graph: Graph, norms: Mapping[int, Norm], placed: PlacedBranch
) -> tuple[Evidence, ...]:
    """Return the steps from the stream through the branch to the add, in order of execution."""
    return tuple(_steps(graph, norms, placed))


def _steps(graph: Graph, norms: Mapping[int, Norm], placed: PlacedBranch) -> Iterator[Evidence]:
    branch = placed.branch
    yield _evidence(graph.nodes[branch.add.stream], "stream", norms)
    for output in placed.sites.get(Site.BRANCH_INPUT, ()):
        yield _evidence(graph.nodes[output], "norm on the branch's input", norms)
    for entry in branch.entries[:_SHOWN_ENTRIES]:
        yield _evidence(graph.nodes[entry.node], "first mixing operation", norms)
    for output in placed.sites.get(Site.INSIDE_BRANCH, ()):
        yield _evidence(graph.nodes[output], "norm inside the branch", norms)
    for output in placed.sites.get(Site.BRANCH_OUTPUT, ()):
        yield _evidence(graph.nodes[output], "norm on the branch's output", norms)
    yield _evidence(graph.nodes[branch.add.node], "residual add", norms)
    for output in placed.sites.get(Site.TRUNK, ()):
        yield _evidence(graph.nodes[output], "norm on the trunk", norms)


def _evidence(node: Node, step: str, norms: Mapping[int, Norm]) -> Evidence:
    norm = norms.get(node.index)
    sizes = "×".join(str(size) for size in node.shape)
    operation = node.name or node.operation
    shown = f"{operation} [{sizes}]"
    if norm is not None:
        shown = f"{norm.name}: {norm.kind.value}({', '.join(str(size) for size in norm.shape)})"
    return Evidence(step=step, operation=shown, module=node.module, source=_source(node))


def _source(node: Node) -> str:
    if node.source is None:
        return ""
    return f"{PurePath(node.source.file).name}:{node.source.line} {node.source.function}"
