"""NormReports -> rows of the norm table: equal calls in equal blocks are one row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from normscope.inspection import BlockReport, Inspection, NormReport
from normscope.render.figures import index_ranges
from normscope.render.names import siblings_as_one, within_block
from normscope.render.norm_facts import NormFacts, cast_text, gain_text, shape_text
from normscope.render.visible import visible
from normscope.render.words import role_word


@dataclass(frozen=True, slots=True, kw_only=True)
class NormRow:
    """What the table says of one norm, or of equal norms in several blocks."""

    name: str
    """With `*` for the indices of the blocks."""
    blocks: str
    runs: str
    """How often it ran in all, where that is not once a block."""
    role: str
    norm: str
    eps: str
    gain: str
    dtypes: str
    half: str
    """Where a run in half precision casts back to its own dtype."""
    folds: str


def norm_rows(inspection: Inspection) -> tuple[NormRow, ...]:
    """Return the rows in order of first execution."""
    blocks = {block.path: block for block in inspection.blocks}
    groups: dict[NormRow, list[NormReport]] = {}
    for norm in inspection.norms:
        groups.setdefault(_row(norm, _block_of(norm, blocks)), []).append(norm)
    return tuple(_counted(row, norms, blocks) for row, norms in groups.items())


def _block_of(norm: NormReport, blocks: Mapping[str, BlockReport]) -> BlockReport | None:
    block = blocks.get(norm.block) if norm.block is not None else None
    return block if block is not None and block.stack is not None else None


def _row(norm: NormReport, block: BlockReport | None) -> NormRow:
    facts = NormFacts.of(norm)
    return NormRow(
        name=_name(norm, block),
        blocks="",
        runs="",
        role=role_word(norm.role),
        norm=facts.divisor.replace(facts.kind, f"{facts.kind}({shape_text(norm.shape)})", 1),
        eps=facts.eps.removeprefix("eps "),
        gain=gain_text(norm).removeprefix("gain ").replace("no gain", "none"),
        dtypes=_dtypes(norm),
        half=cast_text(norm),
        folds=folds_text(norm, block),
    )


def _name(norm: NormReport, block: BlockReport | None) -> str:
    if block is None or block.stack is None:
        return visible(norm.name)
    within = within_block(norm.name, block.path)
    if not norm.name.startswith((f"{block.path}.", f"{block.path}:")):
        return within
    return f"{visible(block.stack)}.*.{within}"


def _dtypes(norm: NormReport) -> str:
    statistics = visible(norm.statistics_dtype or "unknown")
    gain = statistics if norm.gain_dtype is None else visible(norm.gain_dtype)
    return statistics if gain == statistics else f"{statistics}, gain {gain}"


def folds_text(norm: NormReport, block: BlockReport | None) -> str:
    """Return `into q_proj, k_proj, v_proj`, or `no: trunk`."""
    if not norm.calls:
        return "never run"
    if not norm.foldable:
        return f"no: {visible(norm.foldable_reason or 'unknown')}"
    readers = [within_block(r, block.path) if block else visible(r) for r in norm.readers]
    own = [reader.rpartition(".")[2] for reader in readers]
    clear = len(set(own)) == len(own) and not any(name.isdecimal() for name in own)
    return f"into {', '.join(own if clear else siblings_as_one(dict.fromkeys(readers)))}"


def _counted(
    row: NormRow, norms: Iterable[NormReport], blocks: Mapping[str, BlockReport]
) -> NormRow:
    found = list(norms)
    indices = [
        block.index
        for norm in found
        if (block := _block_of(norm, blocks)) is not None and block.index is not None
    ]
    runs = sum(1 for norm in found if norm.calls)
    expected = len(set(indices)) or 1
    return replace(row, blocks=index_ranges(indices), runs="" if runs == expected else str(runs))
