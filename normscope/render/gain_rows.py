"""Inspection -> the stored gains and biases of its norms, those of equal places as one row."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from normscope.inspection import BlockReport, Inspection
from normscope.render.figures import counted, index_ranges
from normscope.render.names import within_block
from normscope.render.visible import visible
from normscope.weights.report import StoredParameter, ValueFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class GainRow:
    """One parameter, or those that stand at one place in several blocks."""

    name: str
    """With `*` for the indices of the blocks."""
    blocks: str
    means: tuple[float, ...]
    """Mean of the effective values (w, or 1 + w), in order of depth."""
    smallest: float
    largest: float
    """Of all effective values."""
    note: str
    """Channels that stand out, and what bfloat16 loses."""


def gain_rows(inspection: Inspection, *, biases: bool) -> tuple[GainRow, ...]:
    """Return a row for each gain, or for each bias, in order of execution."""
    stored = inspection.stored.parameters if inspection.stored is not None else ()
    blocks = dict(_blocks_of(inspection))
    groups: dict[str, list[tuple[StoredParameter, ValueFacts]]] = {}
    for item in stored:
        if item.values is not None and item.is_gain is not biases:
            name = _starred(item.name, blocks.get(item.name))
            groups.setdefault(name, []).append((item, item.values))
    return tuple(_row(name, found, blocks) for name, found in groups.items())


def _blocks_of(inspection: Inspection) -> Iterator[tuple[str, BlockReport]]:
    """Yield each parameter with the block that its norm stands in."""
    blocks = {block.path: block for block in inspection.blocks if block.stack is not None}
    for norm in inspection.norms:
        block = blocks.get(norm.block or "")
        for name in (norm.weight, norm.bias_name):
            if name is not None and block is not None:
                yield name, block


def _starred(name: str, block: BlockReport | None) -> str:
    if block is None or block.stack is None:
        return visible(name)
    within = within_block(name, block.path)
    return f"{visible(block.stack)}.*.{within}" if name.startswith(f"{block.path}.") else within


def _row(
    name: str,
    found: Sequence[tuple[StoredParameter, ValueFacts]],
    blocks: Mapping[str, BlockReport],
) -> GainRow:
    values = [facts for _, facts in found]
    indices = [
        block.index
        for item, _ in found
        if (block := blocks.get(item.name)) is not None and block.index is not None
    ]
    return GainRow(
        name=name,
        blocks=index_ranges(indices),
        means=tuple(facts.effective_mean for facts in values),
        smallest=min(_finite(facts.minimum + facts.offset for facts in values), default=math.nan),
        largest=max(_finite(facts.maximum + facts.offset for facts in values), default=math.nan),
        note=_note(values, of_gains=found[0][0].is_gain),
    )


def _finite(values: Iterator[float]) -> Iterator[float]:
    return (value for value in values if math.isfinite(value))


def _note(values: Sequence[ValueFacts], *, of_gains: bool) -> str:
    if not of_gains:  # a bias of zero, or one far from the others, does no harm
        count = sum(facts.non_finite for facts in values)
        return f"{counted(count, 'channel')} not finite" if count else ""
    total = sum(facts.count for facts in values)
    notes = [
        f"{counted(count, 'channel')} {what}"
        for count, what in (
            (sum(facts.non_finite for facts in values), "not finite"),
            (sum(facts.dead for facts in values), "dead"),
            (sum(facts.outliers for facts in values), "over 10 times the median"),
        )
        if count
    ]
    lost = sum(facts.lost_in_bfloat16 for facts in values)
    if lost:
        notes.append(f"{lost / total:.0%} of w lost in bfloat16")
    return ", ".join(notes)
