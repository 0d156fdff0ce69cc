"""Graph -> the normalizations in it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from normscope.graph import Graph
from normscope.norms.decomposed import find_quotients
from normscope.norms.frozen import find_frozen
from normscope.norms.fused import find_fused
from normscope.norms.norm import Norm
from normscope.norms.parameters import standardizes_a_weight
from normscope.norms.written import norm_of_quotient
from normscope.operations import keeps_elements

_WRAPPING = 8
"""Casts and views that a module may put around its norm."""


def find_norms(graph: Graph) -> tuple[Norm, ...]:
    """Return every norm call in order of execution, named and with its module where it has one."""
    found = [*find_fused(graph), *_written_norms(graph), *find_frozen(graph)]
    located = [_located(graph, norm) for norm in sorted(found, key=lambda norm: norm.output)]
    return _named(located)


def _written_norms(graph: Graph) -> list[Norm]:
    norms: dict[int, Norm] = {}
    for quotient in find_quotients(graph):
        if standardizes_a_weight(graph, quotient.input, quotient.output):
            continue
        norm = norm_of_quotient(graph, quotient)
        norms.setdefault(norm.output, norm)
    return list(norms.values())


def _located(graph: Graph, norm: Norm) -> Norm:
    """Find the module call that is this norm and nothing else, if there is one."""
    owner = graph.nodes[norm.output].call
    ends = {norm.output, *_kept_behind(graph, norm.output)}
    starts = {norm.input, *_kept_before(graph, norm.input)}
    call = graph.calls[owner] if graph.calls else None
    alone = (
        call is not None
        and call.path != ""
        and bool(call.outputs)
        and call.outputs[0] in ends
        and any(value in starts for value in call.inputs)
    )
    path = call.path if call is not None else ""
    output = call.outputs[0] if alone and call is not None else norm.output
    return replace(
        norm,
        output=output,
        interior=norm.interior | _between(graph, norm.output, output),
        module=path if alone else None,
        owner=path,
        owner_call=owner,
    )


def _between(graph: Graph, first: int, last: int) -> frozenset[int]:
    passed: set[int] = set()
    while last != first:
        passed.add(last)
        last = graph.nodes[last].operands[0]
    return frozenset(passed)


def _kept_behind(graph: Graph, index: int) -> list[int]:
    """Return the casts and views of a value."""
    behind: list[int] = [index]
    for value in behind:
        if len(behind) > _WRAPPING:
            break
        behind.extend(
            reader
            for reader in graph.consumers[value]
            if keeps_elements(graph.nodes[reader].operation)
        )
    return behind[1:]


def _kept_before(graph: Graph, index: int) -> list[int]:
    """Return what a value was cast or reshaped from."""
    before: list[int] = []
    node = graph.nodes[index]
    while keeps_elements(node.operation) and node.operands and len(before) < _WRAPPING:
        before.append(node.operands[0])
        node = graph.nodes[node.operands[0]]
    return before


def _named(norms: Sequence[Norm]) -> tuple[Norm, ...]:
    """Give each norm its name and the number of its call under that name."""
    in_owner = Counter(norm.owner_call for norm in norms)
    per_owner: Counter[tuple[str, int]] = Counter()
    counts: Counter[str] = Counter()
    named: list[Norm] = []
    for norm in norms:
        name = norm.module
        if name is None and in_owner[norm.owner_call] == 1 and _holds_its_gain(norm):
            name = norm.owner
        elif name is None:
            key = (f"{norm.owner}:{norm.kind.value}", norm.owner_call)
            name = f"{key[0]}.{per_owner[key]}" if per_owner[key] else key[0]
            per_owner[key] += 1
        named.append(replace(norm, name=name, call=counts[name]))
        counts[name] += 1
    return tuple(named)


def _holds_its_gain(norm: Norm) -> bool:
    """A module that holds the gain and does more than the norm (a gate) still lends its name."""
    return norm.weight is not None and norm.weight.rpartition(".")[0] == norm.owner != ""
