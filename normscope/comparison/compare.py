"""Two inspections -> the norms that stand at the same place, and every fact that differs."""

import math
from collections.abc import Iterator, Mapping

from normscope.comparison.difference import Compared, Comparison, Difference, NormPair
from normscope.comparison.places import NormPlace, norm_places
from normscope.inspection import BlockReport, BranchReport, Inspection, NormReport, Role


def compare_inspections(left: Inspection, right: Inspection) -> Comparison:
    """Match the norms of two models by role and place, and compare every fact of them.

    Names of modules, targets and versions are not compared.
    """
    ours, theirs = norm_places(left), norm_places(right)
    pairs = [(norm, theirs[place]) for place, norm in ours.items() if place in theirs]
    blocks = {block.path: block for block in (*right.blocks, *left.blocks)}
    return Comparison(
        left=Compared.of(left),
        right=Compared.of(right),
        differences=(
            *_structure(left, right),
            *(found for one, other in pairs for found in _facts(one, other, blocks)),
            *_alone(ours, theirs, blocks),
        ),
        pairs=tuple(NormPair(left=one, right=other) for one, other in pairs),
    )


# The model and its blocks.


def _structure(left: Inspection, right: Inspection) -> Iterator[Difference]:
    yield from _of_model("placement", left.placement.value, right.placement.value)
    yield from _of_model("stacks", len(left.stacks), len(right.stacks))
    for one, other in zip(left.stacks, right.stacks, strict=False):
        if one.blocks != other.blocks:
            yield _different(one.path, "blocks", one.blocks, other.blocks)
    for role in (Role.EMBEDDING, Role.FINAL):
        yield from _of_model(f"{role.value} norms", _count(left, role), _count(right, role))
    yield from _blocks(left, right)


def _of_model(fact: str, left: object, right: object) -> Iterator[Difference]:
    if left != right:
        yield _different("model", fact, left, right)


def _count(inspection: Inspection, role: Role) -> int:
    return sum(1 for norm in inspection.norms if norm.role is role and norm.calls)


def _blocks(left: Inspection, right: Inspection) -> Iterator[Difference]:
    theirs = {_place_of(right, block): block for block in right.blocks}
    for block in left.blocks:
        other = theirs.get(_place_of(left, block))
        if other is None:
            continue
        yield from _branches(block, other)


def _branches(block: BlockReport, other: BlockReport) -> Iterator[Difference]:
    """Compare branch by branch where both have the same ones, else as a whole."""
    kinds = [branch.kind.value for branch in block.branches]
    if kinds != [branch.kind.value for branch in other.branches]:
        yield _different(block.path, "branches", _all_text(block), _all_text(other), block=block)
        return
    for one, its in zip(block.branches, other.branches, strict=True):
        ours, theirs = _branch_text(one), _branch_text(its)
        if ours != theirs:
            yield _different(block.path, one.kind.value, ours, theirs, block=block)


def _branch_text(branch: BranchReport) -> str:
    return branch.formula + (", parallel" if branch.parallel else "")


def _all_text(block: BlockReport) -> str:
    return "; ".join(f"{branch.kind.value} {_branch_text(branch)}" for branch in block.branches)


def _place_of(inspection: Inspection, block: BlockReport) -> tuple[int | None, int | None]:
    paths = [stack.path for stack in inspection.stacks]
    return (paths.index(block.stack) if block.stack in paths else None, block.index)


# The norms.


def _facts(
    one: NormReport, other: NormReport, blocks: Mapping[str, BlockReport]
) -> Iterator[Difference]:
    block = blocks.get(one.block or "")
    for fact, left, right in (
        ("kind", one.kind, other.kind),
        ("axes", one.axes, other.axes),
        ("shape", one.shape, other.shape),
        ("groups", one.groups, other.groups),
        ("eps", one.eps, other.eps),
        ("eps position", one.eps_position, other.eps_position),
        ("gain", one.gain, other.gain),
        ("bias", one.bias, other.bias),
        ("statistics dtype", one.statistics_dtype, other.statistics_dtype),
        ("gain dtype", one.gain_dtype, other.gain_dtype),
    ):
        if left != right and not (_is_nan(left) and _is_nan(right)):
            other_name = other.name if other.name != one.name else None
            yield _different(one.name, fact, left, right, block=block, other=other_name)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _alone(
    ours: Mapping[NormPlace, NormReport],
    theirs: Mapping[NormPlace, NormReport],
    blocks: Mapping[str, BlockReport],
) -> Iterator[Difference]:
    for place, norm in ours.items():
        if place not in theirs:
            block = blocks.get(norm.block or "")
            yield _different(norm.name, "norm", _words(place.site), None, block=block)
    for place, norm in theirs.items():
        if place not in ours:
            block = blocks.get(norm.block or "")
            yield _different(norm.name, "norm", None, _words(place.site), block=block)


def _words(site: str) -> str:
    return site.replace("_", " ")


def _different(
    where: str,
    fact: str,
    left: object,
    right: object,
    *,
    block: BlockReport | None = None,
    other: str | None = None,
) -> Difference:
    return Difference(
        where=where,
        stack=None if block is None else block.stack,
        index=None if block is None else block.index,
        fact=fact,
        left=_text(left),
        right=_text(right),
        other=other,
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "×".join(map(str, value)) or "scalar"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
