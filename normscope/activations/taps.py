"""Graph + norm -> where a value of the norm can be read while the model runs; knows no torch."""

from dataclasses import dataclass
from enum import StrEnum

from normscope.graph import Graph, Node, Origin
from normscope.norms import Norm
from normscope.operations import CASTS


class Side(StrEnum):
    """Whether a value is read as it goes in or as it comes out."""

    INTO = "into"
    OUT_OF = "out of"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTap:
    """Reads one tensor of one run of a module, with a hook."""

    path: str
    number: int
    """0 for the module's first run in a forward pass, 1 for its second, …"""
    side: Side
    position: int
    """Which of the tensors, in the order of `ModuleCall.inputs` or `outputs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationTap:
    """Reads one tensor of one operation that a module's run executes itself."""

    path: str
    number: int
    ordinal: int
    """How many operations that run had executed itself before this one."""
    operation: str
    """What must run there; anything else means that the model took another path."""
    side: Side
    position: int


Tap = ModuleTap | OperationTap

_WIDTHS = {"bfloat16": 1, "float16": 1, "float32": 2, "float64": 3}


def tap_input(graph: Graph, norm: Norm) -> Tap | None:
    """Return where the value that goes into the norm can be read, or None."""
    return _at_module_input(graph, norm) or _at_reader(graph, norm) or _at_source(graph, norm.input)


def runs_one_operation(graph: Graph, norm: Norm) -> bool:
    """Tell whether the norm is a module that does one operation: nothing can change its input."""
    ordinals = {node.ordinal for node in graph.nodes if _is_own(node, norm)}
    return norm.module is not None and len(ordinals) == 1


def _is_own(node: Node, norm: Norm) -> bool:
    return node.call == norm.owner_call and node.origin is Origin.OPERATION


def tap_output(graph: Graph, node: int, norm: Norm) -> Tap | None:
    """Return where the norm's output, as `node` holds it, can be read, or None."""
    if norm.module is not None:
        call = graph.calls[norm.owner_call]
        if node in call.outputs:
            return ModuleTap(
                path=call.path,
                number=call.number,
                side=Side.OUT_OF,
                position=call.outputs.index(node),
            )
    return _at_source(graph, node)


def _at_module_input(graph: Graph, norm: Norm) -> ModuleTap | None:
    if norm.module is None:
        return None
    call = graph.calls[norm.owner_call]
    wanted = _same_values(graph, norm.input)
    for position, index in enumerate(call.inputs):
        if index in wanted:
            return ModuleTap(path=call.path, number=call.number, side=Side.INTO, position=position)
    return None


def _same_values(graph: Graph, index: int) -> frozenset[int]:
    """Return a node and the nodes that it was copied or upcast from: the same numbers."""
    found = [index]
    node = graph.nodes[index]
    while node.operation in CASTS and node.operands:
        before = graph.nodes[node.operands[0]]
        if _WIDTHS.get(before.dtype, 0) > _WIDTHS.get(node.dtype, 0):
            break
        found.append(before.index)
        node = before
    return frozenset(found)


def _at_reader(graph: Graph, norm: Norm) -> OperationTap | None:
    """Read the value where the norm's own arithmetic first takes it."""
    for index in sorted(norm.interior):
        node = graph.nodes[index]
        if node.output == 0 and norm.input in node.operands:
            position = node.operands.index(norm.input)
            return _operation_tap(graph, node, Side.INTO, position)
    return None


def _at_source(graph: Graph, index: int) -> OperationTap | None:
    return _operation_tap(graph, graph.nodes[index], Side.OUT_OF, graph.nodes[index].output)


def _operation_tap(graph: Graph, node: Node, side: Side, position: int) -> OperationTap | None:
    first = graph.nodes[node.operands[0]] if node.output and node.operands else node
    if not node.operands or not graph.calls or first.operation == "write":
        return None
    call = graph.calls[node.call]
    return OperationTap(
        path=call.path,
        number=call.number,
        ordinal=node.ordinal,
        operation=first.operation,
        side=side,
        position=position,
    )
