"""What a policy expects of a target, and what is otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from normscope.audit.findings import Observation
from normscope.inspection import (
    BlockReport,
    Inspection,
    NormReport,
    Role,
    Site,
    StackReport,
)

_SITE_ROLES = frozenset({Role.BRANCH_INPUT, Role.BRANCH_OUTPUT, Role.TRUNK})
"""Norms of the blocks; those inside a branch have a kind and an eps of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Facts that a target must have; None where a policy says nothing."""

    placement: str | None = None
    norm: str | None = None
    """Kind of the blocks' norms: `LayerNorm`."""
    eps: float | None = None
    gain: str | None = None
    """`w`, `1+w` or `none`."""
    bias: bool | None = None
    final_norm: bool | None = None
    embedding_norm: bool | None = None
    qk_norm: bool | None = None
    """Whether norms stand inside the attention branches."""
    parallel: bool | None = None
    statistics_dtype: str | None = None
    norms: int | None = None
    """Count of norm calls."""
    stacks: Mapping[str, "Expectation"] = field(default_factory=dict)
    """Path of a stack -> what is expected of that one instead."""

    def over(self, other: "Expectation") -> "Expectation":
        """Return what this one says, and the other where it says nothing."""
        merged = {
            item.name: getattr(self, item.name)
            if getattr(self, item.name) is not None
            else getattr(other, item.name)
            for item in fields(self)
        }
        merged["stacks"] = {**other.stacks, **self.stacks}
        return Expectation(**merged)


def unmet(inspection: Inspection, expected: Expectation) -> Iterator[Observation]:
    """Yield each expectation that does not hold, the model's first, then each stack's."""
    yield from _of_model(inspection, expected)
    for stack in inspection.stacks:
        wanted = expected.stacks.get(stack.path)
        wanted = expected if wanted is None else wanted.over(expected)
        yield from _of_stack(inspection, stack, wanted)
    for path in expected.stacks:
        if path not in {stack.path for stack in inspection.stacks}:
            yield Observation(
                where=path, message=f"there is no stack {path}", found="none", expected="a stack"
            )


def _of_model(inspection: Inspection, expected: Expectation) -> Iterator[Observation]:
    ran = [norm for norm in inspection.norms if norm.calls]
    yield from _unequal("", "final norm", _any(ran, Role.FINAL), expected.final_norm)
    yield from _unequal("", "embedding norm", _any(ran, Role.EMBEDDING), expected.embedding_norm)
    yield from _unequal("", "norm calls", len(ran), expected.norms)
    if not inspection.stacks:
        yield from _unequal("", "placement", inspection.placement.value, expected.placement)


def _any(norms: list[NormReport], role: Role) -> bool:
    return any(norm.role is role for norm in norms)


def _of_stack(
    inspection: Inspection, stack: StackReport, expected: Expectation
) -> Iterator[Observation]:
    blocks = [block for block in inspection.blocks if block.stack == stack.path]
    for block in blocks:
        yield from _of_block(block, expected)
    paths = {block.path: block for block in blocks}
    for norm in inspection.norms:
        home = paths.get(norm.block or "")
        if home is not None and norm.calls and norm.role in _SITE_ROLES:
            yield from _of_norm(norm, home, expected)


def _of_block(block: BlockReport, expected: Expectation) -> Iterator[Observation]:
    yield from _unequal(
        block.path, "placement", block.placement.value, expected.placement, block=block
    )
    inside = any(
        branch.norms.get(Site.INSIDE_BRANCH)
        for branch in block.branches
        if "attention" in branch.kind.value
    )
    yield from _unequal(block.path, "QK norm", bool(inside), expected.qk_norm, block=block)
    parallel = any(branch.parallel for branch in block.branches)
    yield from _unequal(block.path, "parallel branches", parallel, expected.parallel, block=block)


def _of_norm(norm: NormReport, block: BlockReport, expected: Expectation) -> Iterator[Observation]:
    for fact, found, wanted in (
        ("kind", norm.kind, expected.norm),
        ("eps", norm.eps, expected.eps),
        ("gain", norm.gain, expected.gain),
        ("bias", norm.bias, expected.bias),
        ("statistics dtype", norm.statistics_dtype, expected.statistics_dtype),
    ):
        yield from _unequal(norm.name, fact, found, wanted, block=block)


def _unequal(
    where: str, fact: str, found: object, wanted: object, *, block: BlockReport | None = None
) -> Iterator[Observation]:
    if wanted is None or found == wanted:
        return
    yield Observation(
        where=where,
        message=f"{fact} is {text_of(found)}, and the policy expects {text_of(wanted)}",
        found=f"{fact} {text_of(found)}",
        expected=f"{fact} {text_of(wanted)}",
        block=block,
    )


def text_of(value: object) -> str:
    """Return a fact as people write it: `yes`, `1e-05`, `LayerNorm`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
