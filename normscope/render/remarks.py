"""Inspection -> the sentences that a reader should not miss."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from normscope.inspection import Inspection, NormReport, Placement, Role, StackReport
from normscope.render.figures import all_of, counted
from normscope.render.names import siblings_as_one
from normscope.render.stored_remarks import adapter_remarks, stored_remarks
from normscope.render.visible import visible
from normscope.render.words import role_word

_OPEN_ENDED = frozenset({Placement.PRE, Placement.SANDWICH})
"""Placements whose stream grows without a norm of its own, so that a final one is expected."""


def remarks_on(inspection: Inspection) -> tuple[str, ...]:
    """Say what is missing, uneven or unused, each in one plain sentence."""
    return (
        *_nothing_found(inspection),
        *_no_final_norm(inspection),
        *_uneven_eps(inspection.norms),
        *_impossible_eps(inspection.norms),
        *_never_run(inspection),
        *_towers(inspection.towers),
        *adapter_remarks(inspection.adapter),
        *stored_remarks(inspection),
    )


def _nothing_found(inspection: Inspection) -> Iterator[str]:
    if not inspection.blocks:
        yield "no residual block was found, so there is no placement to name"
    if not inspection.norms:
        yield "no norm was found"


def _no_final_norm(inspection: Inspection) -> Iterator[str]:
    for stack in inspection.stacks:
        if stack.ended_by == () and _last_placement(inspection, stack) in _OPEN_ENDED:
            yield f"no final norm: nothing normalizes the stream after {visible(stack.path)}"


def _last_placement(inspection: Inspection, stack: StackReport) -> Placement | None:
    """Return how the last branch of a stack is placed, which the stream leaves it by."""
    blocks = [block for block in inspection.blocks if block.stack == stack.path]
    branches = [branch for block in blocks for branch in block.branches]
    return branches[-1].placement if branches else None


def _uneven_eps(norms: Iterable[NormReport]) -> Iterator[str]:
    by_role: dict[Role, dict[float, list[str]]] = {}
    for norm in norms:
        if norm.eps is not None and norm.calls:
            by_role.setdefault(norm.role, {}).setdefault(norm.eps, []).append(visible(norm.name))
    for role, by_eps in by_role.items():
        if len(by_eps) > 1:
            yield f"the {role_word(role)} norms do not share one eps: {_eps_counts(by_eps)}"


def _eps_counts(by_eps: dict[float, list[str]]) -> str:
    usual, *odd = sorted(by_eps.items(), key=lambda item: -len(item[1]))
    return ", ".join(
        (
            f"{usual[0]:g} in {counted(len(usual[1]), 'call')}",
            *(f"{eps:g} in {', '.join(siblings_as_one(dict.fromkeys(n)))}" for eps, n in odd),
        )
    )


def _impossible_eps(norms: Iterable[NormReport]) -> Iterator[str]:
    found: dict[str, dict[str, None]] = {}
    for norm in norms:
        if norm.eps is not None and not 0 <= norm.eps < math.inf:
            found.setdefault(f"{norm.eps:g}", {})[visible(norm.name)] = None
    for eps, names in found.items():
        shown = ", ".join(siblings_as_one(names))
        yield f"eps is {eps} in {shown}: what such a norm gives is not finite, or zero"


def _never_run(inspection: Inspection) -> Iterator[str]:
    idle = Counter(visible(norm.name) for norm in inspection.norms if not norm.calls)
    if idle:
        names = ", ".join(siblings_as_one(idle))
        yield f"built and never run: {names}"


def _towers(towers: tuple[str, ...]) -> Iterator[str]:
    if towers:
        names = all_of(visible(tower) for tower in towers)
        yield f"the whole forward could not run; traced alone: {names}"
