"""Inspection -> TargetFacts: what a lock file records of a target."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from normscope.audit.ranges import ranges_of
from normscope.audit.report import StackFacts, TargetFacts
from normscope.audit.stacks import blocks_of, norms_of, numberless, place_in
from normscope.inspection import BlockReport, Inspection, NormReport, StackReport

_PASSING = frozenset({"transformers_version", "_name_or_path", "_commit_hash"})
"""Keys of a config that say who wrote it and where it lay, and nothing of the model."""


def config_digest(config: Mapping[str, Any] | None) -> str | None:
    """Return 16 hexadecimal digits of a config's content, however it is laid out."""
    if config is None:
        return None
    kept = {key: value for key, value in config.items() if key not in _PASSING}
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def facts_of(inspection: Inspection, config: str | None = None) -> TargetFacts:
    """Return what the target is; `config` is the digest of its config."""
    return TargetFacts(
        class_name=inspection.model.class_name,
        model_type=inspection.model.model_type,
        revision=inspection.model.revision,
        config=config,
        dtype=inspection.model.dtype,
        parameters=inspection.model.parameters,
        placement=inspection.placement.value,
        stacks=tuple(_stack(inspection, stack) for stack in inspection.stacks),
        outside=tuple(_outside(inspection)),
        norm_calls=sum(1 for norm in inspection.norms if norm.calls),
    )


def _stack(inspection: Inspection, stack: StackReport) -> StackFacts:
    found: dict[str, set[str]] = {}
    for block, norm in norms_of(inspection, stack):
        found.setdefault(_line(place_in(block, norm.name), norm), set()).add(block.path)
    return StackFacts(
        path=stack.path,
        blocks=stack.blocks,
        placements=tuple(_placements(blocks_of(inspection, stack))),
        norms=tuple(
            f"{line} blocks {_share(len(paths), stack.blocks)}" for line, paths in found.items()
        ),
    )


def _share(count: int, whole: int) -> str:
    return "all" if count == whole else str(count)


def _placements(blocks: Iterable[BlockReport]) -> Iterator[str]:
    """Yield each wiring of the blocks with the numbers of those that have it."""
    wirings: dict[str, list[int]] = {}
    for block in blocks:
        text = ", ".join(
            f"{branch.kind.value} {branch.placement.value} {branch.formula}"
            for branch in block.branches
        )
        wirings.setdefault(text, []).append(block.index or 0)
    for text, indices in wirings.items():
        which = "all" if len(wirings) == 1 else ranges_of(sorted(set(indices)))
        yield f"{which}: {text}"


def _outside(inspection: Inspection) -> Iterator[str]:
    """Yield each distinct norm outside of stacks, with how many are alike."""
    listed = {block.path for block in inspection.blocks if block.stack is not None}
    lines = Counter(
        _line(numberless(norm.name), norm)
        for norm in inspection.norms
        if norm.block not in listed and norm.call == 0
    )
    for line, count in lines.items():
        yield f"{line} count {count}"


def _line(place: str, norm: NormReport) -> str:
    """Return one norm as words of which each fact follows its label."""
    eps = "none" if norm.eps is None else f"{norm.eps:g}"
    bias = "yes" if norm.bias else "no"
    dtype = norm.statistics_dtype or "unknown"
    return (
        f"{place}: {norm.kind} role {norm.role.value} eps {eps} gain {norm.gain} bias {bias} "
        f"statistics {dtype} calls {norm.calls}"
    )
