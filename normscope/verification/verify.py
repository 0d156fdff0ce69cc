"""Inspection -> Verification: its verdicts checked on a small copy with random weights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from normscope.assembly import PlacedRoot
from normscope.assembly.norm_rows import joined
from normscope.checkpoint import Checkpoint
from normscope.errors import NormscopeError
from normscope.graph import Graph
from normscope.inspection import (
    Inspection,
    NotChecked,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)
from normscope.model import BuiltModel
from normscope.placement.place import PlacedBlock
from normscope.verification.compare import CopyBlock, compare_branches
from normscope.verification.conclude import Conclusion, conclude
from normscope.verification.copies import Copy, NoCopy, copy_of
from normscope.verification.norm_checks import verify_norms
from normscope.verification.observe_model import SeenBranch, chosen_blocks, observe_model
from normscope.verification.rerun import Subject

Place = Callable[[str, Graph], PlacedRoot]
"""Finds and places the norms of one traced root, given its path."""


def verify_inspection(
    inspection: Inspection, checkpoint: Checkpoint, built: BuiltModel, place: Place
) -> Verification:
    """Check each norm and each branch that `inspection` reports of a checkpoint.

    `built` is the model that was inspected, on `meta` or not; it is left as it is. Norms are
    probed one by one at their full size. Branches are observed on a copy: the same code with
    fewer blocks and smaller widths where its config allows, all parameters random. What could
    not be checked is listed with the reason, never raised.
    """
    with _one_thread():
        return _verified(inspection, checkpoint, built, place)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Hundreds of runs of tiny operations: threads would wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _verified(
    inspection: Inspection, checkpoint: Checkpoint, built: BuiltModel, place: Place
) -> Verification:
    norms = list(verify_norms(built.module, inspection.norms))
    copy = copy_of(checkpoint, built, inspection)
    wording, blocks = _observed(copy, place)
    branches = list(compare_branches(inspection.blocks, inspection.norms, blocks))
    if isinstance(copy, NoCopy):
        reason = f"no copy of it runs: {copy.reason}"
        branches = [_without_copy(item, reason) for item in branches]
    return Verification(
        copy=wording,
        branches=tuple(item for item in branches if isinstance(item, VerifiedBranch)),
        norms=tuple(item for item in norms if isinstance(item, VerifiedNorm)),
        branches_not_checked=tuple(item for item in branches if isinstance(item, NotChecked)),
        norms_not_checked=tuple(item for item in norms if isinstance(item, NotChecked)),
    )


def _without_copy(item: VerifiedBranch | NotChecked, reason: str) -> VerifiedBranch | NotChecked:
    return replace(item, reason=reason) if isinstance(item, NotChecked) else item


def _observed(copy: Copy | NoCopy, place: Place) -> tuple[str, list[CopyBlock]]:
    if isinstance(copy, NoCopy):
        return "none", []
    blocks = [
        block for path, subject in copy.roots for block in observed_blocks(path, subject, place)
    ]
    return copy.wording, blocks


def observed_blocks(path: str, subject: Subject, place: Place) -> Iterator[CopyBlock]:
    """Observe the branches of one running root and conclude their names."""
    root = place(path, subject.graph)
    try:
        seen = list(observe_model(subject, root))
    except NormscopeError as error:
        seen = [
            SeenBranch(block=block, placed=branch, seen=error.message)
            for block in chosen_blocks(root.placed.blocks)
            for branch in block.branches
        ]
    found: dict[int, Conclusion | str] = {
        id(item.placed): item.seen for item in seen if isinstance(item.seen, str)
    }
    found |= {id(item.placed): item for item in conclude(seen)}
    for block in chosen_blocks(root.placed.blocks):
        yield _copy_block(path, block, found)


def _copy_block(prefix: str, block: PlacedBlock, found: dict[int, Conclusion | str]) -> CopyBlock:
    return CopyBlock(
        path=joined(prefix, block.key.path),
        kinds=tuple(item.branch.kind.value for item in block.branches),
        facts=tuple((item.placement, frozenset(item.sites)) for item in block.branches),
        branches=tuple(found[id(item)] for item in block.branches),
    )
