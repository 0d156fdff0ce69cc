"""Norms that stand in no branch -> what they are for."""

from collections.abc import Mapping, Sequence

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import POOLING, mixes
from normscope.placement.blocks import BlockKey
from normscope.placement.lists import stack_path
from normscope.placement.vocabulary import Role
from normscope.residuals import ResidualStream
from normscope.residuals.carried import carried_values, pooled_operands, sums_behind

_VALUES = 96


def role_outside(
    graph: Graph,
    norm: Norm,
    stream: ResidualStream,
    blocks: Mapping[int, BlockKey],
    starts: Mapping[int, Sequence[int]],
) -> Role:
    """Return the role of a norm that no branch claims.

    `starts` maps each value that a stack's first stream value carries on to the sums that read it.
    """
    behind = sums_behind(graph, norm.input, stream.adds)
    opened = starts.get(norm.output, ())
    if behind:
        if not opened and _all_go_on(behind, stream, blocks):
            # A side output of a middle block: the stream itself goes on without this norm.
            return Role.HEAD
        return _role_behind_a_stack(graph, norm, behind, blocks, starts, opens=bool(opened))
    if opened:
        earlier = _sum_before(graph, norm, stream)
        if earlier is None:
            return Role.EMBEDDING
        return Role.BETWEEN_STACKS if blocks[earlier].listed else Role.STACK_INPUT
    if sums_behind(graph, norm.input, stream.adds, pooled_operands):
        return Role.FINAL
    return _role_by_order(graph, norm, stream, starts)


def _all_go_on(
    behind: Sequence[int], stream: ResidualStream, blocks: Mapping[int, BlockKey]
) -> bool:
    """Tell whether each of the sums is followed by another block of its own stack."""
    stacks = {node: stack_path(blocks[node].path) for node in behind if blocks[node].listed}
    going_on = {
        earlier
        for node, add in stream.adds.items()
        for earlier in add.previous
        if stacks.get(earlier) == stack_path(blocks[node].path)
    }
    return bool(stacks) and going_on.issuperset(behind)


def _role_behind_a_stack(
    graph: Graph,
    norm: Norm,
    behind: Sequence[int],
    blocks: Mapping[int, BlockKey],
    starts: Mapping[int, Sequence[int]],
    *,
    opens: bool,
) -> Role:
    """Tell a final norm from one between the stages of a stack, or before the first stack.

    The final norm of an encoder also leads to the decoder, and that of a vision tower to the
    language model; only where the same stack goes on, or the next one is entered directly, does
    the norm stand between.
    """
    listed = [node for node in behind if blocks[node].listed]
    if opens:
        return Role.BETWEEN_STACKS if listed else Role.STACK_INPUT
    stacks = {stack_path(blocks[node].path) for node in listed}
    following = _starts_reached(graph, norm.output, starts)
    same = any(stack_path(blocks[node].path) in stacks for node in following)
    return Role.BETWEEN_STACKS if same else Role.FINAL


def _starts_reached(graph: Graph, value: int, starts: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the first adds of the stacks whose stream a value enters, perhaps transformed."""
    last = max(starts, default=-1)
    pending, seen, found = [value], {value}, set[int]()
    for current in pending:
        found.update(starts.get(current, ()))
        for reader in graph.consumers[current]:
            if reader not in seen and reader <= last:
                seen.add(reader)
                pending.append(reader)
    return found


def stack_starts(
    graph: Graph, stream: ResidualStream, blocks: Mapping[int, BlockKey]
) -> dict[int, list[int]]:
    """Return what the first stream value of each stack carries on, with the sums that follow."""
    starts: dict[int, list[int]] = {}
    for node, add in stream.adds.items():
        if any(blocks[earlier].listed == blocks[node].listed for earlier in add.previous):
            # The stream of an earlier block goes on: in the same stack, or directly in the next.
            same = stack_path(blocks[node].path)
            if any(stack_path(blocks[earlier].path) == same for earlier in add.previous):
                continue
        if not blocks[node].listed and any(key.listed for key in blocks.values()):
            continue
        for value in carried_values(graph, add.add.stream, stream.adds):
            starts.setdefault(value, []).append(node)
    return starts


def _sum_before(graph: Graph, norm: Norm, stream: ResidualStream) -> int | None:
    """Return a residual add that leads to the norm, if only through other computations."""
    first = min(stream.adds, default=norm.input)
    if first > norm.input:
        return None
    pending, seen = [norm.input], {norm.input}
    for current in pending:
        if current in stream.adds:
            return current
        for operand in graph.nodes[current].operands:
            if operand not in seen and operand >= first:
                seen.add(operand)
                pending.append(operand)
    return None


def _role_by_order(
    graph: Graph, norm: Norm, stream: ResidualStream, starts: Mapping[int, Sequence[int]]
) -> Role:
    """Place a norm by what runs before and after it where it touches no stream directly."""
    before = _sum_before(graph, norm, stream) is not None
    after = _reaches_a_sum(graph, norm.output, stream)
    if before and after:
        return Role.BETWEEN_STACKS
    if before:
        return Role.POOLER if _is_pooled(graph, norm) else Role.HEAD
    entered = after and bool(_starts_reached(graph, norm.output, starts))
    return Role.EMBEDDING if entered else Role.UNPLACED


def _reaches_a_sum(graph: Graph, value: int, stream: ResidualStream) -> bool:
    last = max(stream.adds, default=-1)
    pending, seen = [value], {value}
    for current in pending:
        if current in stream.adds:
            return True
        for reader in graph.consumers[current]:
            if reader not in seen and reader <= last:
                seen.add(reader)
                pending.append(reader)
    return False


def _is_pooled(graph: Graph, norm: Norm) -> bool:
    """Tell whether fewer places remain than in the model's own stream."""
    node = graph.nodes[norm.input]
    pending, seen = [node.index], {node.index}
    for current in pending:
        found = graph.nodes[current]
        if found.operation in POOLING or found.operation in {"mean", "select"}:
            return True
        if mixes(found.operation) or len(seen) > _VALUES:
            continue
        for operand in found.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return False
