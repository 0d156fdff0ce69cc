"""Blocks of an inspection: those of a stack, those around a path, and what stands in them."""

from collections.abc import Iterator, Mapping

from normscope.inspection import (
    BlockReport,
    Inspection,
    NormReport,
    Role,
    Site,
    StackReport,
)

SITE_ROLES = frozenset({Role.BRANCH_INPUT, Role.BRANCH_OUTPUT, Role.TRUNK})
"""Norms around the branches; those inside of one have a kind and an eps of their own."""


def blocks_of(inspection: Inspection, stack: StackReport) -> tuple[BlockReport, ...]:
    """Return the blocks of a stack; one that runs in several ways is there for each of them."""
    return tuple(block for block in inspection.blocks if block.stack == stack.path)


def blocks_by_path(inspection: Inspection) -> dict[str, BlockReport]:
    """Return the first report of each block."""
    found: dict[str, BlockReport] = {}
    for block in inspection.blocks:
        found.setdefault(block.path, block)
    return found


def block_around(path: str, blocks: Mapping[str, BlockReport]) -> BlockReport | None:
    """Return the innermost block that a module or parameter lies in."""
    while path:
        if path in blocks:
            return blocks[path]
        path = path.rpartition(".")[0]
    return None


def norms_of(
    inspection: Inspection, stack: StackReport
) -> Iterator[tuple[BlockReport, NormReport]]:
    """Yield the norms that ran in the blocks of a stack, each with its block."""
    blocks = {block.path: block for block in blocks_of(inspection, stack)}
    for norm in inspection.norms:
        if norm.calls and norm.block in blocks:
            yield blocks[norm.block], norm


def place_in(block: BlockReport, path: str) -> str:
    """Return where something stands in its block: `*.input_layernorm`.

    What lies in a list of its own beside the blocks (XLM's norms) has `*` for its number.
    """
    if block.path and path.startswith(f"{block.path}."):
        return f"*{path[len(block.path) :]}"
    return numberless(path)


def numberless(path: str) -> str:
    """Return a path with `*` in place of each number."""
    return ".".join("*" if part.isdecimal() else part for part in path.split("."))


def reads_normalized(inspection: Inspection, block: BlockReport) -> bool:
    """Tell whether a norm outside of the blocks is read in this one: an embedding norm, mostly."""
    return any(
        norm.block is None
        and any(f"{reader}.".startswith(f"{block.path}.") for reader in norm.readers)
        for norm in inspection.norms
        if norm.calls
    )


def expected_norms(
    inspection: Inspection, stack: StackReport
) -> Iterator[tuple[BlockReport | None, NormReport]]:
    """Yield the norms that a policy's `norm`, `eps`, `gain` … are about.

    Those around the branches of a stack's blocks, and the final ones behind it.
    """
    for block, norm in norms_of(inspection, stack):
        if norm.role in SITE_ROLES:
            yield block, norm
    for norm in inspection.norms:
        if norm.role is Role.FINAL and norm.calls and norm.name in (stack.ended_by or ()):
            yield None, norm


def normalizes_queries(inspection: Inspection, block: BlockReport) -> bool | None:
    """Tell whether a norm inside a block's attention is read by the module that runs it.

    A latent, and what stands before the output's linear layer, are read by that layer. None for a
    block without attention.
    """
    attention = [branch for branch in block.branches if "attention" in branch.kind.value]
    inside = {name for branch in attention for name in branch.norms.get(Site.INSIDE_BRANCH, ())}
    if not attention:
        return None
    return any(map(_is_read_by_its_owner, _named(inspection, inside)))


def _named(inspection: Inspection, names: set[str]) -> Iterator[NormReport]:
    return (norm for norm in inspection.norms if norm.name in names)


def _is_read_by_its_owner(norm: NormReport) -> bool:
    path = norm.name.partition(":")[0]
    return any(path == reader or path.startswith(f"{reader}.") for reader in norm.readers)
