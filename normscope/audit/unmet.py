"""Inspection + Expectation -> what is otherwise than expected."""

import math
from collections.abc import Iterator

from normscope.audit.expectations import Expectation
from normscope.audit.findings import Observation
from normscope.audit.policy_source import did_you_mean
from normscope.audit.stacks import (
    SITE_ROLES,
    block_around,
    blocks_by_path,
    blocks_of,
    expected_norms,
    normalizes_queries,
    norms_of,
)
from normscope.inspection import (
    BlockReport,
    Inspection,
    NormReport,
    Placement,
    Role,
    StackReport,
)


def unmet(inspection: Inspection, expected: Expectation) -> Iterator[Observation]:
    """Yield each expectation that does not hold, the model's first, then each stack's."""
    yield from _of_model(inspection, expected)
    for stack in inspection.stacks:
        yield from _of_stack(inspection, stack, expected)
    known = tuple(stack.path for stack in inspection.stacks)
    for path in expected.stacks:
        if path not in known:
            there = did_you_mean(path, known, "there are") if known else "the model has none"
            yield Observation(
                where=path,
                message=f"there is no such stack; {there}",
                found="none",
                expected="a stack",
            )


# The model.


def _of_model(inspection: Inspection, expected: Expectation) -> Iterator[Observation]:
    ran = [norm for norm in inspection.norms if norm.calls]
    yield from _unequal("", "final norm", _any(ran, Role.FINAL), expected.final_norm)
    yield from _unequal("", "embedding norm", _any(ran, Role.EMBEDDING), expected.embedding_norm)
    yield from _unequal("", "norm calls", len(ran), expected.norms)
    if inspection.stacks:
        return
    yield from _unequal("", "placement", inspection.placement.value, expected.placement)
    blocks = blocks_by_path(inspection)
    for norm in ran:
        if norm.role in SITE_ROLES or norm.role is Role.FINAL:
            yield from _of_norm(norm, block_around(norm.block or "", blocks), expected)


def _any(norms: list[NormReport], role: Role) -> bool:
    return any(norm.role is role for norm in norms)


# One stack.


def _of_stack(
    inspection: Inspection, stack: StackReport, whole: Expectation
) -> Iterator[Observation]:
    own, expected = whole.stacks.get(stack.path), whole.of_stack(stack.path)
    if own is not None:
        behind = [norm for norm in inspection.norms if norm.name in (stack.ended_by or ())]
        yield from _unequal(stack.path, "final norm", _any(behind, Role.FINAL), own.final_norm)
        calls = len(list(norms_of(inspection, stack)))
        yield from _unequal(stack.path, "norm calls", calls, own.norms)
    if expected.placement == Placement.MIXED.value:
        yield from _unequal(stack.path, "placement", stack.placement.value, expected.placement)
    for block in blocks_of(inspection, stack):
        yield from _of_block(inspection, block, expected)
    for around, norm in expected_norms(inspection, stack):
        yield from _of_norm(norm, around, expected)


def _of_block(
    inspection: Inspection, block: BlockReport, expected: Expectation
) -> Iterator[Observation]:
    if expected.placement != Placement.MIXED.value:
        yield from _unequal(
            block.path, "placement", block.placement.value, expected.placement, block=block
        )
    found = normalizes_queries(inspection, block)
    if found is not None:
        yield from _unequal(block.path, "QK norm", found, expected.qk_norm, block=block)
    parallel = any(branch.parallel for branch in block.branches)
    yield from _unequal(block.path, "parallel branches", parallel, expected.parallel, block=block)


def _of_norm(
    norm: NormReport, block: BlockReport | None, expected: Expectation
) -> Iterator[Observation]:
    for fact, found, wanted in (
        ("kind", norm.kind, expected.norm),
        ("eps", norm.eps, expected.eps),
        ("gain", norm.gain, expected.gain),
        ("bias", norm.bias, expected.bias),
        ("statistics dtype", norm.statistics_dtype, expected.statistics_dtype),
    ):
        yield from _unequal(norm.name, fact, found, wanted, block=block)


# One fact.


def _unequal(
    where: str, fact: str, found: object, wanted: object, *, block: BlockReport | None = None
) -> Iterator[Observation]:
    if wanted is None or _equal(found, wanted):
        return
    yield Observation(
        where=where,
        message=f"{fact} is {_text_of(found)}, and the policy expects {_text_of(wanted)}",
        found=f"{fact} {_text_of(found)}",
        expected=f"{fact} {_text_of(wanted)}",
        block=block,
    )


def _equal(found: object, wanted: object) -> bool:
    """Compare; an eps that went through float32 is the number that was written."""
    if isinstance(found, float) and isinstance(wanted, int | float):
        return math.isclose(found, wanted, rel_tol=1e-6)
    return found == wanted


def _text_of(value: object) -> str:
    """Return a fact as people write it: `yes`, `1e-05`, `LayerNorm`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
