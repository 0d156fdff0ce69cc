"""One branch of a running copy -> what interventions show of the norms around it."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

import torch

from normscope.graph import Graph, Origin
from normscope.operations import INTEGER_DTYPES
from normscope.verification.cuts import Cuts, goes_past
from normscope.verification.rerun import Edge, Edit, Subject, Values, rerun
from normscope.verification.responses import (
    Response,
    responses_to_growth,
    responses_to_shift,
)

_MOST_SUMS = 16
"""Values between the stream and the first products that are grown in turn."""


class Trunk(StrEnum):
    """Whether all that lies behind a sum is blind to its size."""

    NORMALIZED = "normalized"
    FREE = "free"
    ENDS = "ends"
    """It is, but the stack ends here: a final norm looks the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBranch:
    """The numerical facts of one branch."""

    entries: Mapping[Response, int]
    """How often the operands of its first mixing operations gave each answer to growth of x."""
    added_to: int
    """How many of the unchanged ones are so only for growth of x plus what is added to it."""
    whole: Response
    """The answer of the branch's output to growth of x."""
    centred: Response | None
    """The entries' answer to a shift of x; None where no norm stands before them."""
    output: bool
    """Whether its output is blind to the size of what it computed."""
    partly: bool
    """Whether it is blind to the size of a part of that, which a norm is said to end."""
    skip: Response
    """The skip's answer to growth of x along it."""
    projected: bool
    trunk: Trunk
    remainder: float
    """What zeroing the branch leaves beside the skip, relative to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What can be seen of a sum from behind."""

    values: tuple[Edge | int, ...]
    """What its first products behind it read, and the next sums, or the model's outputs."""
    sums: tuple[int, ...]
    """Those of them that are sums."""
    ends: bool
    """Whether no further sum of the same list of blocks follows."""


def watched_of(cuts: Cuts, behind: Behind, ended: Sequence[int]) -> list[Edge | int]:
    """Return all that the baseline run has to give for one branch."""
    first = [*cuts.into_branch[:1], *cuts.into_skip[:1]]
    sums = [cuts.skip.reader, *behind.values]
    before = [waist for edge in cuts.entries for waist in cuts.before[edge]]
    return [*first, *cuts.entries, *before, *cuts.waists, *ended, cuts.skip, _result(cuts), *sums]


def observe_branch(
    subject: Subject,
    baseline: Values,
    cuts: Cuts,
    behind: Behind,
    *,
    ended: Sequence[int],
    projected: bool,
) -> ObservedBranch:
    """Intervene at the cuts of one branch; `ended` are the inputs of the norms at its end.

    Raises `NormscopeError` where an edited run does not follow the traced one.
    """
    result = _result(cuts)
    answers = dict(
        responses_to_growth(subject, baseline, cuts.into_branch, [*cuts.entries, result])
    )
    aside = _entries_aside(subject.graph, cuts, answers)
    answers |= dict.fromkeys(aside, Response.NOTHING)
    still = [edge for edge in cuts.entries if answers[edge] is Response.UNCHANGED]
    added_to = _behind_a_sum(subject, baseline, cuts, set(cuts.entries) - {*still, *aside})
    answers |= dict.fromkeys(added_to, Response.UNCHANGED)
    entries = [answers[edge] for edge in cuts.entries if answers[edge] is not Response.NOTHING]
    output = _is_blind_to_one(
        subject, baseline, cuts, [waist for waist in cuts.waists if waist != cuts.output]
    )
    return ObservedBranch(
        entries={response: entries.count(response) for response in set(entries)},
        added_to=len(added_to),
        whole=answers[result],
        centred=_centred(subject, baseline, cuts, still),
        output=output,
        partly=not output and _is_blind_to_one(subject, baseline, cuts, ended),
        skip=_skip(subject, baseline, cuts),
        projected=projected,
        trunk=_trunk(subject, baseline, cuts, behind),
        remainder=_remainder(subject, cuts),
    )


def seen_values(graph: Graph, nodes: Sequence[int]) -> tuple[int, ...]:
    """Return the nodes whose values a rerun can look at."""
    return tuple(
        index
        for index in nodes
        if graph.nodes[index].origin is Origin.OPERATION
        and graph.nodes[index].operation != "write"
        and graph.nodes[index].dtype not in INTEGER_DTYPES
    )


def _result(cuts: Cuts) -> Edge | int:
    return cuts.branch if cuts.output == cuts.whole_branch else cuts.output


def _is_blind_to_one(subject: Subject, baseline: Values, cuts: Cuts, grown: Sequence[int]) -> bool:
    result = _result(cuts)
    return any(
        responses_to_growth(subject, baseline, [value], [result])[result] is Response.UNCHANGED
        for value in grown
    )


def _entries_aside(graph: Graph, cuts: Cuts, answers: Mapping[Edge | int, Response]) -> list[Edge]:
    """Return the entries behind a norm that only prepare what is added to the inputs of others.

    A decoder reads from its normalized queries where they are to look (SAM 3).
    """
    growing = {
        edge.reader
        for edge in cuts.entries
        if answers[edge] in {Response.IN_STEP, Response.CHANGED}
    }
    return [
        edge
        for edge in cuts.entries
        if growing
        and answers[edge] is Response.UNCHANGED
        and edge.reader not in growing
        and not goes_past(graph, cuts, edge.reader, growing)
    ]


def _behind_a_sum(subject: Subject, baseline: Values, cuts: Cuts, changed: Set[Edge]) -> list[Edge]:
    """Return the entries that are blind to the size of a value made of x and something else.

    Where a position or an earlier value is added to x before the norm, x alone can be seen.
    """
    behind: dict[int, list[Edge]] = {}
    for edge in cuts.entries:
        for waist in cuts.before[edge] if edge in changed else ():
            behind.setdefault(waist, []).append(edge)
    found: dict[Edge, None] = {}
    for waist in list(behind)[:_MOST_SUMS]:
        answers = responses_to_growth(subject, baseline, [waist], behind[waist])
        found |= dict.fromkeys(
            edge for edge in behind[waist] if answers[edge] is Response.UNCHANGED
        )
    return list(found)


def _centred(
    subject: Subject, baseline: Values, cuts: Cuts, still: Sequence[Edge]
) -> Response | None:
    if not still:
        return None
    answers = set(responses_to_shift(subject, baseline, cuts.into_branch, still).values())
    return answers.pop() if len(answers) == 1 else Response.UNCLEAR


def _skip(subject: Subject, baseline: Values, cuts: Cuts) -> Response:
    if not cuts.into_skip:
        return Response.IN_STEP
    return responses_to_growth(subject, baseline, cuts.into_skip, [cuts.skip])[cuts.skip]


def _trunk(subject: Subject, baseline: Values, cuts: Cuts, behind: Behind) -> Trunk:
    answers = responses_to_growth(subject, baseline, [cuts.skip.reader], behind.values)
    clear = set(answers.values()) - {Response.UNCLEAR, Response.NOTHING}
    if not clear <= {Response.UNCHANGED}:
        return Trunk.FREE
    # A sum for tokens of a kind that there are none of is as good as none.
    ends = behind.ends or all(answers[value] is Response.NOTHING for value in behind.sums)
    return Trunk.ENDS if ends or not clear else Trunk.NORMALIZED


def _remainder(subject: Subject, cuts: Cuts) -> float:
    total = cuts.skip.reader
    seen = rerun(
        subject,
        Edit(operands={cuts.branch: torch.zeros_like}, watched=(cuts.skip, total)),
    )
    left = seen[total].flatten()
    skip = seen[cuts.skip].expand_as(seen[total]).flatten()
    factor = skip @ left / (skip @ skip)
    return float((left - factor * skip).norm() / skip.norm())
