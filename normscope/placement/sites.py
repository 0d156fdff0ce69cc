"""One branch -> the norms at its sites, its name and its formula."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.operations import ACTIVATIONS, NORMALIZE, mixes
from normscope.placement.vocabulary import Placement, Site, name_of_sites
from normscope.residuals import Branch
from normscope.residuals.adds import only_mixes_streams
from normscope.residuals.branches import branch_tail
from normscope.residuals.parts import reads_another_part
from normscope.residuals.steps import Step, StepKind, steps_back

_ADDENDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBranch:
    """A branch with its norms at their sites."""

    branch: Branch
    placement: Placement
    sites: Mapping[Site, tuple[int, ...]]
    """Outputs of the norms at each site that has some, in order of execution."""
    formula: str
    shared_norm: bool = False
    reason: str | None = None
    has_skip: bool = True
    beside_skip: bool = False
    """Whether its sum is only what the branch around it reads, and the skip goes around both."""


def place_branch(
    graph: Graph, norms: Mapping[int, Norm], branch: Branch, trunk: int | None
) -> PlacedBranch:
    """Read the sites of one branch off the condensed graph and name them."""
    entering = sorted({norm for entry in branch.entries for norm in entry.norms})
    ending = _ending(graph, branch, set(entering))
    leaving = list(ending.norms)
    inside = sorted(
        index
        for index in branch.own
        if graph.nodes[index].operation == NORMALIZE
        and index in norms
        and index not in entering
        and index not in leaving
    )
    sites = {
        Site.BRANCH_INPUT: tuple(entering),
        Site.INSIDE_BRANCH: tuple(inside),
        Site.BRANCH_OUTPUT: tuple(leaving),
        Site.TRUNK: () if trunk is None else (trunk,),
    }
    sites = {site: found for site, found in sites.items() if found}
    partial = bool(entering) and any(entry.bare for entry in branch.entries)
    placement, reason = _name(graph, branch, frozenset(sites), ending, partial=partial)
    return PlacedBranch(
        branch=branch,
        placement=placement,
        sites=sites,
        formula=_formula(branch, sites, ending, partial=partial),
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """The norms at a branch's end, and why they are no plain output norm."""

    norms: tuple[int, ...] = ()
    activated: bool = False
    summed: bool = False
    partly: bool = False
    """Whether the value is put together from pieces of which only some come from norms."""


def _ending(graph: Graph, branch: Branch, entering: set[int]) -> _Ending:
    """Find the norms between a branch's last computation and the add."""
    leaving = [step.node for step in branch.tail if step.kind is StepKind.NORM]
    end = branch.tail[-1].value if branch.tail else branch.output
    node = graph.nodes[end]
    activated = summed = partly = False
    if not leaving and node.operation in ACTIVATIONS and node.operands:
        leaving = [step.node for step in _tails(graph, branch, node.operands[:1])]
        activated = bool(leaving)
    elif not leaving and node.operation in {"add", "sub"}:
        leaving = [step.node for step in _tails(graph, branch, _addends(graph, end))]
        summed = bool(leaving)
    elif not leaving:
        tails = [_tails(graph, branch, (piece,)) for piece in _pieces(graph, branch, end)]
        partly = any(tails) and not all(tails)
        leaving = [] if partly else [step.node for tail in tails for step in tail]
    leaving = sorted({norm for norm in leaving if norm not in entering})
    return _Ending(
        norms=tuple(leaving),
        activated=activated and bool(leaving),
        summed=summed and bool(leaving),
        partly=partly,
    )


def _pieces(graph: Graph, branch: Branch, value: int) -> tuple[int, ...]:
    """Return the values of the branch that a value is put together from, none where it is one."""
    pieces = [step.value for step in steps_back(graph, value) if step.kind is StepKind.SAME]
    within = tuple(piece for piece in pieces if piece in branch.nodes)
    return within if len(within) > 1 else ()


def _addends(graph: Graph, value: int) -> tuple[int, ...]:
    """Return what a sum of sums and differences adds up."""
    pending, found = [value], []
    for current in pending:
        node = graph.nodes[current]
        if node.operation in {"add", "sub"} and len(pending) < _ADDENDS:
            pending.extend(node.operands)
        else:
            found.append(current)
    return tuple(found)


def _tails(graph: Graph, branch: Branch, addends: tuple[int, ...]) -> list[Step]:
    """Return the norms that the addends of a branch's last sum end in."""
    return [
        step
        for addend in addends
        if addend in branch.nodes
        for step in branch_tail(graph, branch.add, addend, branch.nodes)
        if step.kind is StepKind.NORM
    ]


def _name(
    graph: Graph, branch: Branch, sites: frozenset[Site], ending: _Ending, *, partial: bool
) -> tuple[Placement, str | None]:
    operations = {graph.nodes[index].operation for index in branch.own}
    opaque = sorted(operation for operation in operations if "::" in operation)
    if opaque:
        return Placement.UNKNOWN, f"what {', '.join(opaque)} computes is not visible"
    if any(step.kind is StepKind.NORM for step in branch.add.steps) and not _is_projected(branch):
        return Placement.OTHER, "the skip passes a norm that the branch does not"
    if any(step.factor == "H" for step in branch.add.steps):
        return Placement.OTHER, "the skip mixes parallel streams"
    if reads_another_part(graph, branch):
        return Placement.OTHER, "it is added to other parts of the stream than it reads"
    if only_mixes_streams(graph, branch.add):
        return Placement.OTHER, "the branch only mixes parallel streams"
    if sites - {Site.INSIDE_BRANCH} and not any(map(mixes, operations)):
        return Placement.OTHER, "a later value of the stream is added to an earlier one"
    if partial:
        return Placement.OTHER, "only some of the branch's inputs are normalized"
    if ending.summed:
        return Placement.OTHER, "the branch ends in a sum of normalized values"
    if ending.partly:
        return Placement.OTHER, "only some pieces of the branch's output are normalized"
    if ending.activated:
        return Placement.OTHER, "an activation stands between the branch's norm and the add"
    name = name_of_sites(sites)
    return name, None if name is not Placement.OTHER else "norms at " + ", ".join(
        sorted(site.value for site in sites - {Site.INSIDE_BRANCH})
    )


def _is_projected(branch: Branch) -> bool:
    return any(step.factor == "P" for step in branch.add.steps)


def _formula(
    branch: Branch,
    sites: Mapping[Site, tuple[int, ...]],
    ending: _Ending,
    *,
    partial: bool,
) -> str:
    argument = "x"
    if Site.BRANCH_INPUT in sites:
        argument = "N(x), x" if partial else "N(x)"
    outer, inner = _factors(branch, ending.norms)
    body = f"{inner}f({argument})"
    if ending.norms:
        body = f"N({body})"
    if ending.activated:
        body = f"σ({body})"
    skip = _skip_formula(branch.add.steps)
    total = f"{skip} {branch.add.sign} {branch.add.branch_factor_text}{outer}{body}"
    return f"N({total})" if Site.TRUNK in sites else total


def _factors(branch: Branch, leaving: tuple[int, ...]) -> tuple[str, str]:
    """Return the scales outside and inside of the branch's output norm."""
    outer: list[str] = []
    inner: list[str] = []
    passed = False
    for step in branch.tail:
        passed = passed or step.node in leaving
        if step.kind in {StepKind.SCALE, StepKind.GATE} and step.factor not in {"", "1"}:
            (inner if passed else outer).append(step.factor)
    return _product(outer), _product(inner)


def _product(factors: list[str]) -> str:
    return "".join(f"{factor}·" for factor in dict.fromkeys(factors))


def _skip_formula(steps: tuple[Step, ...]) -> str:
    text = "x"
    for step in reversed(steps):
        if step.kind is StepKind.NORM:
            text = f"N({text})"
        elif step.factor == "P":
            text = f"P({text})"
        elif step.kind in {StepKind.SCALE, StepKind.GATE} and step.factor not in {"", "1"}:
            text = f"{step.factor}·{text}"
    return text
