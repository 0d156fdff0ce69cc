"""norms + stream -> the site of each norm, the name of each branch, the blocks and the stacks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from normscope.graph import Graph
from normscope.norms import Norm
from normscope.placement.after_norm import norms_before_skips, shared_trunk_norms
from normscope.placement.blocks import BlockKey, assign_blocks
from normscope.placement.endings import norms_behind_stacks
from normscope.placement.lists import paths_around, pattern, stack_path
from normscope.placement.roles import role_outside, stack_starts
from normscope.placement.sites import PlacedBranch, place_branch
from normscope.placement.skipless import SkiplessBranch, adds_inside, skipless_branches
from normscope.placement.trunk import trunk_norms
from normscope.placement.vocabulary import Placement, Role, Site
from normscope.residuals import Branch, ResidualStream
from normscope.residuals.carried import sums_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBlock:
    """One run of one block, its branches in order of execution."""

    key: BlockKey
    stack: str | None
    index: int | None
    branches: tuple[PlacedBranch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNorm:
    """What one norm is for, and the path of its block if it has one."""

    role: Role
    block: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedModel:
    """Every block with its branches, and the role of every norm by the node of its output."""

    blocks: tuple[PlacedBlock, ...]
    roles: Mapping[int, PlacedNorm]
    endings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Outputs of the norms behind the last block of each stack whose stream ends there."""


def place_norms(graph: Graph, norms: Sequence[Norm], stream: ResidualStream) -> PlacedModel:
    """Place every norm of a condensed graph around the residual adds of its stream."""
    by_output = {norm.output: norm for norm in norms}
    keys = assign_blocks(graph, stream)
    trunks = trunk_norms(graph, by_output, stream, keys)
    trunks = shared_trunk_norms(by_output, stream, keys, trunks)
    before = norms_before_skips(graph, by_output, stream, keys, trunks)
    skipless = skipless_branches(graph, stream, keys)
    inside = adds_inside(stream, keys, skipless)
    placed: list[tuple[BlockKey, PlacedBranch]] = [
        (keys[node], _placed(graph, by_output, branch, trunks, before))
        for node, add in stream.adds.items()
        if node not in inside and not add.side
        for branch in add.branches
    ]
    placed += [
        (keys[node], _beside_the_skip(graph, by_output, branch))
        for node, add in stream.adds.items()
        if add.side
        for branch in add.branches
    ]
    placed += [(item.block, _without_skip(graph, by_output, item)) for item in skipless]
    blocks = _blocks(graph, placed)
    return PlacedModel(
        blocks=blocks,
        roles=_roles(graph, by_output, stream, keys, blocks),
        endings=norms_behind_stacks(graph, by_output, stream, keys),
    )


def _placed(
    graph: Graph,
    norms: Mapping[int, Norm],
    branch: Branch,
    trunks: Mapping[int, int],
    before: Mapping[int, int],
) -> PlacedBranch:
    placed = place_branch(graph, norms, branch, trunks.get(branch.add.node))
    norm = before.get(branch.add.node)
    if norm is None:
        return placed
    return replace(
        placed,
        placement=Placement.OTHER,
        formula=placed.formula.replace("x", "N(x)"),
        sites={Site.BRANCH_INPUT: (norm,), **placed.sites},
        reason="the skip is taken from the norm's output",
    )


def _beside_the_skip(graph: Graph, norms: Mapping[int, Norm], branch: Branch) -> PlacedBranch:
    placed = place_branch(graph, norms, branch, None)
    return replace(
        placed,
        placement=Placement.OTHER,
        formula=placed.formula.partition(" + ")[2],
        reason="it is added to the input of the next branch only; the skip goes around both",
        beside_skip=True,
    )


def _without_skip(graph: Graph, norms: Mapping[int, Norm], item: SkiplessBranch) -> PlacedBranch:
    placed = place_branch(graph, norms, item.branch, None)
    return replace(
        placed,
        placement=Placement.OTHER,
        formula=placed.formula.partition(" + ")[2],
        reason="no skip goes around it",
        has_skip=False,
    )


def _blocks(
    graph: Graph, placed: Sequence[tuple[BlockKey, PlacedBranch]]
) -> tuple[PlacedBlock, ...]:
    grouped: dict[BlockKey, list[PlacedBranch]] = {}
    for key, branch in sorted(placed, key=lambda item: item[1].branch.output):
        grouped.setdefault(key, []).append(branch)
    positions = _positions(graph, {key.path for key in grouped if key.listed})
    return tuple(
        PlacedBlock(
            key=key,
            stack=stack_path(key.path) if key.listed else None,
            index=positions.get(key.path),
            branches=_with_shared_norms(_once_each(graph, branches)),
        )
        for key, branches in grouped.items()
    )


def _once_each(graph: Graph, branches: Sequence[PlacedBranch]) -> list[PlacedBranch]:
    """Keep one run of a branch whose module the block calls once for each of its streams."""
    first_sums: dict[tuple[object, ...], int] = {}
    kept: list[PlacedBranch] = []
    for branch in branches:
        node = graph.nodes[branch.branch.add.node]
        site = (node.module, node.ordinal, branch.branch.kind, branch.formula)
        if first_sums.setdefault(site, node.index) == node.index:
            kept.append(branch)
    return kept


def _positions(graph: Graph, listed: set[str]) -> dict[str, int]:
    """Number the elements of each stack's lists in the order of the modules."""
    stacks = {stack_path(path) for path in listed}
    counts: Counter[str] = Counter()
    positions: dict[str, int] = {}
    for path in graph.modules:
        outer = graph.modules.get(path.rpartition(".")[0])
        stack = stack_path(path)
        if outer is not None and outer.is_list and stack in stacks:
            positions[path] = counts[stack]
            counts[stack] += 1
    return positions


def _with_shared_norms(branches: Sequence[PlacedBranch]) -> tuple[PlacedBranch, ...]:
    """Mark parallel branches that read one norm."""
    parallel = [branch for branch in branches if branch.branch.parallel]
    readers = Counter(
        norm for branch in parallel for norm in branch.sites.get(Site.BRANCH_INPUT, ())
    )
    return tuple(
        replace(
            branch,
            shared_norm=branch.branch.parallel
            and any(readers[norm] > 1 for norm in branch.sites.get(Site.BRANCH_INPUT, ())),
        )
        for branch in branches
    )


_SITE_ROLES = {
    Site.TRUNK: Role.TRUNK,
    Site.BRANCH_OUTPUT: Role.BRANCH_OUTPUT,
    Site.BRANCH_INPUT: Role.BRANCH_INPUT,
    Site.INSIDE_BRANCH: Role.INSIDE_BRANCH,
}


def _roles(
    graph: Graph,
    norms: Mapping[int, Norm],
    stream: ResidualStream,
    keys: Mapping[int, BlockKey],
    blocks: Sequence[PlacedBlock],
) -> dict[int, PlacedNorm]:
    roles = _roles_in_branches(blocks, norms)
    starts = stack_starts(graph, stream, keys)
    holding = _holding_paths(blocks)
    on_skips = {step.node for add in stream.adds.values() for step in add.add.steps}
    trunk_lists = {
        pattern(norms[output].owner)
        for output, placed in roles.items()
        if placed.role is Role.TRUNK
    }
    for output, norm in norms.items():
        if output in roles:
            continue
        block = next((path for path in paths_around(norm.owner) if path in holding), None)
        role = role_outside(graph, norm, stream, keys, starts)
        if block is not None and pattern(norm.owner) in trunk_lists:
            # The first norm of a stack whose other blocks end in it: `n = N(x); n + f(n)`.
            role = Role.TRUNK
        elif block is not None and role is Role.FINAL:
            # A second norm in a row at a block's end; or the block reads another stream's end.
            behind = sums_behind(graph, norm.input, stream.adds)
            own = any(keys[sums].path == block for sums in behind)
            role = Role.TRUNK if own else Role.INSIDE_BRANCH
        elif output in on_skips or (block is not None and output not in starts):
            role = Role.INSIDE_BRANCH
        roles[output] = PlacedNorm(role=role, block=block)
    return roles


def _roles_in_branches(
    blocks: Sequence[PlacedBlock], norms: Mapping[int, Norm]
) -> dict[int, PlacedNorm]:
    roles: dict[int, PlacedNorm] = {}
    last = {block.stack: block for block in blocks}
    for site, role in _SITE_ROLES.items():
        for block in blocks:
            for branch in block.branches:
                for output in branch.sites.get(site, ()):
                    ends = (
                        site is Site.TRUNK
                        and block.stack is not None
                        and last[block.stack] is block
                        # In no list, as its siblings' trunk norms are: it ends the stack.
                        and "*" not in pattern(norms[output].owner)
                    )
                    placed = PlacedNorm(
                        role=Role.FINAL if ends else role, block=None if ends else block.key.path
                    )
                    roles.setdefault(output, placed)
    return roles


def _holding_paths(blocks: Sequence[PlacedBlock]) -> set[str]:
    """Return the blocks that norms can lie in; a lone block that holds a stack is none."""
    listed = {block.key.path for block in blocks if block.key.listed}
    around_listed = {outer for path in listed for outer in paths_around(path)}
    return listed | ({block.key.path for block in blocks if block.key.path} - around_listed)
