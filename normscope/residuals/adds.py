"""Condensed graph -> the residual adds in it.

An add is residual where one operand (the skip) leads back, through steps that carry a value on, to
a stream value v, and the other (the branch) depends on the same v through a mixing operation. The
nearest such v wins.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from normscope.graph import Graph, Node
from normscope.residuals.ancestry import Ancestry
from normscope.residuals.steps import Step, StepKind, is_activation, steps_back

_SKIP_STEPS = 48
"""Operations that a skip may pass; window partition and its reverse take about twenty."""
_PARALLEL_SUMS = 8
"""Sums of one chain that may lie between two parallel branches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualAdd:
    """One addition of a branch to the stream that it read."""

    node: int
    """The sum."""
    stream: int
    """The stream value v that skip and branch both come from."""
    skip: int
    """The operand that leads back to v."""
    branch: int
    """The operand that the branch computed."""
    steps: tuple[Step, ...]
    """From the skip back to v."""
    parallel_to: int | None = None
    """The sum that the skip passed on its way to v: that branch runs beside this one."""
    sign: str = "+"
    branch_factor: str = ""
    """A scale that the addition itself applies to the branch (`addcmul`, `alpha`)."""

    @property
    def branch_factor_text(self) -> str:
        """The branch's own scale as it reads in a formula, with its product sign."""
        return f"{self.branch_factor}·" if self.branch_factor else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    value: int
    steps: tuple[Step, ...]
    parallel_to: int | None
    sums: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addition:
    """Two addends, whatever operation adds them."""

    skip: int
    branch: int
    sign: str = "+"
    factor: str = ""


def find_residual_adds(graph: Graph) -> Mapping[int, ResidualAdd]:
    """Return the residual adds by the index of their sum, in order of execution."""
    found: dict[int, ResidualAdd] = {}
    for node in graph.nodes:
        add = _first_residual(graph, node, found)
        if add is not None:
            found[node.index] = add
    return found


def _first_residual(
    graph: Graph, node: Node, found: Mapping[int, ResidualAdd]
) -> ResidualAdd | None:
    """Return the first way to read a node as a residual add; a gated skip is the last resort."""
    additions = list(_additions(graph, node))
    for gates in (False, True):
        for addition in additions:
            add = _residual(graph, node, addition, found, gates=gates)
            if add is not None:
                return add
    return None


def _additions(graph: Graph, node: Node) -> Iterator[_Addition]:
    """Yield the ways to read a node as skip plus branch."""
    operands = node.operands
    if node.operation == "add" and len(operands) == 2 and operands[0] != operands[1]:
        first, second = operands
        alpha = node.argument("alpha", 1)
        factor = "" if alpha == 1 else f"{alpha}"
        if _can_add(graph, node, first, second):
            yield _Addition(skip=first, branch=second, factor=factor)
        if _can_add(graph, node, second, first):
            yield _Addition(skip=second, branch=first)
    elif node.operation == "sub" and len(operands) == 2:
        if _can_add(graph, node, operands[0], operands[1]):
            yield _Addition(skip=operands[0], branch=operands[1], sign="-")
    elif node.operation == "addcmul" and len(operands) == 3:
        yield from _fused_product(graph, node)
    elif node.operation in {"addmm", "baddbmm", "addbmm", "addmv"} and len(operands) == 3:
        # The branch is the product itself, which has no node of its own.
        if is_activation(graph, operands[0]) and graph.nodes[operands[0]].shape == node.shape:
            yield _Addition(skip=operands[0], branch=operands[1])
    elif (
        node.operation == "lerp"
        and len(operands) >= 2
        and _can_add(graph, node, operands[0], operands[1])
    ):
        yield _Addition(skip=operands[0], branch=operands[1], factor="γ")


def _fused_product(graph: Graph, node: Node) -> Iterator[_Addition]:
    skip, first, second = node.operands
    flowing = [item for item in (first, second) if is_activation(graph, item)]
    if is_activation(graph, skip) and flowing:
        factor = "γ" if len(flowing) == 1 else "g"
        yield _Addition(skip=skip, branch=max(flowing), factor=factor)


def _can_add(graph: Graph, node: Node, skip: int, branch: int) -> bool:
    """A skip may be a learned query or latent, as it is stored; a branch is computed."""
    sizes, kept, added = (_sizes(graph, index) for index in (node.index, skip, branch))
    return (
        len(node.shape) > 1
        and _fits(kept, sizes, least=2)
        and _fits(added, sizes, least=3)
        and is_activation(graph, branch)
        and (is_activation(graph, skip) or graph.depends_on_weight[skip])
    )


def _fits(sizes: tuple[int, ...], whole: tuple[int, ...], *, least: int) -> bool:
    """Tell whether a value is as large as the sum, or is added along its leading axes.

    Queries that are stored for one sequence meet what was computed for several; what is computed
    once is added to each of several streams that are stacked.
    """
    return sizes == whole or (len(sizes) >= least and whole[-len(sizes) :] == sizes)


def _sizes(graph: Graph, index: int) -> tuple[int, ...]:
    """Return a shape without leading ones: [1, n, d] + [n, d] is an addition of equals."""
    shape = graph.nodes[index].shape
    first = next((axis for axis, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def _residual(
    graph: Graph,
    node: Node,
    addition: _Addition,
    found: Mapping[int, ResidualAdd],
    *,
    gates: bool,
) -> ResidualAdd | None:
    ancestry = Ancestry(graph, addition.branch)
    product = node.operation in {"addmm", "baddbmm", "addbmm", "addmv"}
    for candidate in _skip_values(graph, addition.skip, found, gates=gates):
        if candidate.value == addition.branch and not product:
            continue
        reached = ancestry.reaches(candidate.value)
        if reached and not product and not ancestry.mixed_from(candidate.value):
            if any(step.kind is StepKind.GATE for step in candidate.steps):
                continue
            # Both operands carry the same value: 2x, or x·cos + rotate(x)·sin.
            return None
        if reached:
            return ResidualAdd(
                node=node.index,
                stream=candidate.value,
                skip=addition.skip,
                branch=addition.branch,
                steps=candidate.steps,
                parallel_to=candidate.parallel_to,
                sign=addition.sign,
                branch_factor=addition.factor,
            )
    return None


def _skip_values(
    graph: Graph, skip: int, found: Mapping[int, ResidualAdd], *, gates: bool
) -> Iterator[_Candidate]:
    """Yield the values that a skip carries on, nearest (latest) first."""
    start = _Candidate(value=skip, steps=(), parallel_to=None, sums=0)
    heap: list[tuple[int, int, _Candidate]] = [(-skip, 0, start)]
    seen = {skip}
    while heap and len(seen) < _SKIP_STEPS:
        _, _, candidate = heapq.heappop(heap)
        yield candidate
        for following in _following(graph, candidate, found, gates=gates):
            if following.value not in seen:
                seen.add(following.value)
                heapq.heappush(heap, (-following.value, len(seen), following))


def _following(
    graph: Graph, candidate: _Candidate, found: Mapping[int, ResidualAdd], *, gates: bool
) -> Iterator[_Candidate]:
    sums = found.get(candidate.value)
    if sums is not None and candidate.sums < _PARALLEL_SUMS:
        yield _Candidate(
            value=sums.stream,
            steps=candidate.steps + sums.steps,
            parallel_to=candidate.value if candidate.parallel_to is None else candidate.parallel_to,
            sums=candidate.sums + 1,
        )
    steps = [*steps_back(graph, candidate.value)]
    if gates:
        steps += _streams_mixed(graph, candidate.value)
    for step in steps:
        if step.kind is StepKind.GATE and not gates:
            continue
        yield _Candidate(
            value=step.value,
            steps=(*candidate.steps, step),
            parallel_to=candidate.parallel_to,
            sums=candidate.sums,
        )


def only_mixes_streams(graph: Graph, add: ResidualAdd) -> bool:
    """Tell x + H·x: parallel streams are mixed, and nothing else is computed of them (AltUp)."""
    value, mixed = add.branch, False
    for _ in range(_SKIP_STEPS):
        steps = [step for step in steps_back(graph, value) if step.kind is StepKind.SAME]
        if not steps and not mixed:
            steps = [*_streams_mixed(graph, value)]
            mixed = bool(steps)
        if len(steps) != 1:
            return False
        value = steps[0].value
        if value == add.stream:
            return mixed
    return False


def _streams_mixed(graph: Graph, index: int) -> Iterator[Step]:
    """Step over a product that mixes parallel streams (hyper-connections): H·x of x's size."""
    node = graph.nodes[index]
    if node.operation not in {"bmm", "matmul"} or len(node.operands) != 2:
        return
    for operand in node.operands:
        others = [item for item in node.operands if item != operand]
        if graph.nodes[operand].shape == node.shape and all(
            is_activation(graph, item) for item in node.operands
        ):
            square = all(len(set(graph.nodes[item].shape[-2:])) == 1 for item in others)
            if square:
                yield Step(kind=StepKind.GATE, node=index, value=operand, factor="H")
