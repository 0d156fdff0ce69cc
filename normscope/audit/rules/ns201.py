"""NS201: an eps that is not the config's, or not that of the other norms."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import SITE_ROLES, blocks_by_path, norms_of, numberless
from normscope.inspection import BlockReport, EpsSetting, Inspection, NormReport, Role, StackReport
from normscope.weights.judgements import differing_eps

_SET_BY_CONFIG = frozenset({"LayerNorm", "RMSNorm"})
"""Kinds whose eps configs give; those of batch, group and L2 norms are mostly left to torch."""


def check(subject: Subject) -> Iterator[Observation]:
    """Compare each eps with the config's, and those that agree with it with each other."""
    inspection = subject.inspection
    ignoring = tuple(_ignoring_the_config(inspection))
    yield from _differing_from_config(inspection, ignoring)
    yield from _differing_from_file(inspection)
    ignored = {id(norm) for norm in ignoring}
    for stack in inspection.stacks:
        yield from _odd_among_siblings(inspection, stack, ignored)


# Against the config.


def _ignoring_the_config(inspection: Inspection) -> Iterator[NormReport]:
    """Yield the norms whose eps no setting has.

    Where a part of the config says nothing of eps, norms of which no stack has a set value may be
    that part's own, and are left out.
    """
    settings = _values(inspection.model.eps_settings)
    if not settings:
        return
    silent = any(setting.value is None for setting in inspection.model.eps_settings)
    judged = _parts_with_settings(inspection, settings) if silent else None
    for norm in inspection.norms:
        differs = _has_eps(norm) and not _is_among(norm.eps, settings)
        if differs and (judged is None or id(norm) in judged):
            yield norm


def _values(settings: Sequence[EpsSetting]) -> list[float]:
    return sorted({setting.value for setting in settings if setting.value is not None})


def _has_eps(norm: NormReport) -> bool:
    return bool(norm.calls) and norm.eps is not None and norm.kind in _SET_BY_CONFIG


def _is_among(eps: float | None, values: Collection[float]) -> bool:
    return eps is not None and any(_same(eps, value) for value in values)


def _same(one: float, other: float) -> bool:
    """Tell whether two eps are one number, as float32 has it; NaN is that what NaN is."""
    return math.isclose(one, other, rel_tol=1e-6) or (math.isnan(one) and math.isnan(other))


def _parts_with_settings(inspection: Inspection, settings: Collection[float]) -> set[int]:
    """Return the norms of the stacks, with those behind them, in which a setting is used."""
    found: set[int] = set()
    for stack in inspection.stacks:
        part = [norm for _, norm in norms_of(inspection, stack) if _has_eps(norm)]
        if any(_is_among(norm.eps, settings) for norm in part):
            part += [norm for norm in inspection.norms if norm.name in (stack.ended_by or ())]
            found.update(map(id, part))
    return found


def _differing_from_config(
    inspection: Inspection, norms: Sequence[NormReport]
) -> Iterator[Observation]:
    settings = [item for item in inspection.model.eps_settings if item.value is not None]
    values = " or ".join(f"{value:g}" for value in _values(settings))
    said = ", ".join(f"{item.key} {item.value:g}" for item in settings[:3])
    more = f" and {len(settings) - 3} more" if len(settings) > 3 else ""
    blocks = blocks_by_path(inspection)
    for norm in norms:
        yield Observation(
            where=norm.name,
            message=f"eps is {norm.eps:g}, and the config says {said}{more}",
            found=f"eps {norm.eps:g}",
            expected=f"eps {values}",
            block=blocks.get(norm.block or ""),
            likeness=None if norm.block in blocks else numberless(norm.name),
        )


def _differing_from_file(inspection: Inspection) -> Iterator[Observation]:
    """Yield an eps that a GGUF file names and that no norm runs with."""
    if inspection.stored is not None:
        ran = [norm.eps for norm in inspection.norms if norm.calls]
        for problem in differing_eps(inspection.stored, ran):
            yield Observation(
                where="",
                message=problem.message,
                found=f"eps {problem.found}",
                expected=f"eps {problem.expected} of the file",
            )


# Against each other.


def _odd_among_siblings(
    inspection: Inspection, stack: StackReport, ignored: Collection[int]
) -> Iterator[Observation]:
    """Compare the norms around the branches, with the final one; those inside among themselves."""
    groups: dict[tuple[str, str], list[tuple[BlockReport | None, NormReport]]] = {}
    for block, norm in norms_of(inspection, stack):
        if norm.eps is not None and id(norm) not in ignored:
            role = "site" if norm.role in SITE_ROLES else norm.role.value
            groups.setdefault((role, norm.kind), []).append((block, norm))
    for norm in inspection.norms:
        if norm.role is Role.FINAL and norm.name in (stack.ended_by or ()):
            members = groups.get(("site", norm.kind))
            if members and norm.eps is not None and norm.calls and id(norm) not in ignored:
                members.append((None, norm))
    for members in groups.values():
        yield from _odd(members)


def _odd(members: Sequence[tuple[BlockReport | None, NormReport]]) -> Iterator[Observation]:
    """Yield those that differ from most, from the first where there is no most."""
    usual = Counter(norm.eps for _, norm in members).most_common(1)[0][0]
    for block, norm in members:
        if norm.eps is not None and usual is not None and not _same(norm.eps, usual):
            yield Observation(
                where=norm.name,
                message=f"eps is {norm.eps:g}, and that of most norms of its stack {usual:g}",
                found=f"eps {norm.eps:g}",
                expected=f"eps {usual:g}",
                block=block,
            )


RULE = Rule(
    code="NS201",
    title="eps that differs from the config or among norms",
    what="Reads eps from what ran. Compares that of every LayerNorm and RMSNorm with each eps "
    "that the config sets (of its parts too; a part that sets none is not held against the "
    "others), and then the norms of one stack, with the final norm, among each other.",
    severity=Severity.WARNING,
    why="Ports read eps from the config: where the code ignores it (BioGPT, Perceiver, SegFormer), "
    "or some norms take a library's default, the port computes something else.",
    mend="Make the norms read the config's value, or correct the config. Where it is meant, "
    "ignore NS201 for this target, or expect the eps in the policy and ignore it for the family.",
    check=check,
)
