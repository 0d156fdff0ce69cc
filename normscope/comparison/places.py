"""Inspection -> where each norm call stands in the dataflow, which names have no part in."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from normscope.inspection import Inspection, NormReport


@dataclass(frozen=True, slots=True, kw_only=True)
class NormPlace:
    """What norms of two models are matched by."""

    stack: int | None
    """Ordinal of the stack, in order of execution; None outside of all stacks."""
    block: int | None
    """Index of the block in its stack."""
    branch: int | None
    site: str
    """Site in the branch, or role where it belongs to none."""
    order: int = 0
    """Which of several at the same place."""


def norm_places(inspection: Inspection) -> Mapping[NormPlace, NormReport]:
    """Return the norm calls that ran by their place, in order of execution."""
    within = dict(_in_branches(inspection))
    blocks = dict(_block_places(inspection))
    counts: Counter[NormPlace] = Counter()
    places: dict[NormPlace, NormReport] = {}
    for norm in inspection.norms:
        if not norm.calls:
            continue
        found = within.get((norm.block, norm.name)) or _beside_branches(norm, blocks)
        places[_numbered(found, counts[found])] = norm
        counts[found] += 1
    return places


def _numbered(place: NormPlace, order: int) -> NormPlace:
    return NormPlace(
        stack=place.stack, block=place.block, branch=place.branch, site=place.site, order=order
    )


def _beside_branches(norm: NormReport, blocks: Mapping[str, tuple[int | None, int]]) -> NormPlace:
    stack, index = blocks.get(norm.block or "", (None, None))
    return NormPlace(stack=stack, block=index, branch=None, site=norm.role.value)


def _block_places(inspection: Inspection) -> Iterator[tuple[str, tuple[int | None, int]]]:
    stacks = {stack.path: number for number, stack in enumerate(inspection.stacks)}
    for number, block in enumerate(inspection.blocks):
        stack = stacks.get(block.stack) if block.stack is not None else None
        yield block.path, (stack, number if block.index is None else block.index)


def _in_branches(inspection: Inspection) -> Iterator[tuple[tuple[str | None, str], NormPlace]]:
    """Yield ((block, name of a norm), its place); of a norm in two branches the first."""
    places = dict(_block_places(inspection))
    seen: set[tuple[str | None, str]] = set()
    for block in inspection.blocks:
        stack, index = places[block.path]
        for number, branch in enumerate(block.branches):
            for site, names in branch.norms.items():
                for name in names:
                    if (block.path, name) not in seen:
                        seen.add((block.path, name))
                        place = NormPlace(stack=stack, block=index, branch=number, site=site.value)
                        yield (block.path, name), place
