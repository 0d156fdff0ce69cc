"""Inspection -> Summary: what a reader is told, before it is set as a table or as markdown."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from normscope.audit.misleading_names import contradiction
from normscope.inspection import Inspection, NormReport, Placement, Role
from normscope.render.figures import counted, human_bytes, human_count
from normscope.render.footnotes import Footnotes
from normscope.render.names import siblings_as_one
from normscope.render.norm_facts import NormFacts, common_text
from normscope.render.remarks import remarks_on
from normscope.render.stack_summary import StackSummary, summarize_stacks
from normscope.render.visible import visible
from normscope.render.words import ROLE_LABELS, SITE_ROLES

WEIGHTS = {
    "none": "weights not read",
    "headers": "weight headers read",
    "norms": "norm weights read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One formula, and how many branches compute it."""

    placement: Placement
    formula: str
    branches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideNorm:
    """Norms of one role that belong to no branch."""

    label: str
    names: tuple[str, ...]
    facts: str
    """What it computes, where that differs from the norms of the blocks."""
    footnote: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All that the short views say of one checkpoint."""

    class_name: str
    target: str
    size: str
    placement: Placement
    verdict: tuple[VerdictLine, ...]
    norms_of_blocks: str
    """What N stands for: `N = RMSNorm(4096), eps 1e-06, gain w`; "" without any."""
    stacks: tuple[StackSummary, ...]
    outside: tuple[OutsideNorm, ...]
    norms: tuple[tuple[str, str], ...]
    """What the norm calls compute, and how many of them have which role."""
    remarks: tuple[str, ...]
    footnotes: tuple[str, ...]
    """Sentence n belongs to the mark (n + 1)."""


def summarize(inspection: Inspection) -> Summary:
    """Gather what a reader is told of one inspection."""
    ran = tuple(norm for norm in inspection.norms if norm.calls)
    around = tuple(norm for norm in ran if norm.role in SITE_ROLES - {Role.INSIDE_BRANCH})
    of_blocks = around or tuple(norm for norm in ran if norm.role is Role.INSIDE_BRANCH)
    usual = _most_common(NormFacts.of(norm) for norm in of_blocks)
    footnotes = Footnotes()
    return Summary(
        class_name=visible(inspection.model.class_name),
        target=_target(inspection),
        size=f"{human_count(inspection.model.parameters)} parameters, {_weights(inspection)}",
        placement=inspection.placement,
        verdict=_verdict(inspection),
        norms_of_blocks=_norms_of_blocks(of_blocks, "N =" if around else "norms inside:"),
        stacks=summarize_stacks(inspection, usual, footnotes),
        outside=_outside(ran, usual, footnotes),
        norms=_norm_lines(ran),
        remarks=remarks_on(inspection),
        footnotes=footnotes.sentences,
    )


def _weights(inspection: Inspection) -> str:
    """Return how much of the weights was read."""
    said = WEIGHTS.get(inspection.weights, visible(inspection.weights))
    stored = inspection.stored
    if stored is None:
        return said
    return f"{said} ({human_bytes(stored.bytes_read)} of {human_bytes(stored.file_bytes)})"


def _target(inspection: Inspection) -> str:
    target, revision = inspection.target, inspection.model.revision
    if revision is None or target.endswith(f"@{revision}"):
        return visible(target)
    shown = revision[:_SHORT] if len(revision) == _COMMIT else revision
    return visible(f"{target} ({shown})" if "@" in target else f"{target}@{shown}")


_COMMIT, _SHORT = 40, 12
"""Letters of a commit, and how many of them name it well enough."""


def _verdict(inspection: Inspection) -> tuple[VerdictLine, ...]:
    counts = Counter(
        (branch.placement, visible(branch.formula))
        for block in inspection.blocks
        for branch in block.branches
    )
    return tuple(
        VerdictLine(placement=placement, formula=formula, branches=count)
        for (placement, formula), count in counts.most_common()
    )


def _norms_of_blocks(norms: tuple[NormReport, ...], introduction: str) -> str:
    return f"{introduction} {common_text(norms)}" if norms else ""


def _most_common(facts: Iterable[NormFacts]) -> NormFacts | None:
    ranked = Counter(facts).most_common(1)
    return ranked[0][0] if ranked else None


def _by_facts(norms: Iterable[NormReport]) -> list[tuple[NormFacts, list[NormReport]]]:
    groups: dict[NormFacts, list[NormReport]] = {}
    for norm in norms:
        groups.setdefault(NormFacts.of(norm), []).append(norm)
    return sorted(groups.items(), key=lambda group: -len(group[1]))


def _outside(
    norms: Iterable[NormReport], usual: NormFacts | None, footnotes: Footnotes
) -> tuple[OutsideNorm, ...]:
    groups: dict[tuple[Role, str, int | None], list[str]] = {}
    for norm in norms:
        if norm.role in SITE_ROLES:
            continue
        shown = NormFacts.of(norm).beside(usual)
        mark = footnotes.mark(contradiction(norm.name, norm.role))
        groups.setdefault((norm.role, shown, mark), []).append(visible(norm.name))
    return tuple(
        OutsideNorm(
            label=ROLE_LABELS[role],
            names=siblings_as_one(dict.fromkeys(names)),
            facts=facts,
            footnote=mark,
        )
        for (role, facts, mark), names in groups.items()
    )


def _norm_lines(norms: tuple[NormReport, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"{counted(len(members), 'call')} of {facts}", _roles(members))
        for facts, members in _by_facts(norms)
    )


def _roles(norms: Iterable[NormReport]) -> str:
    counts = Counter(norm.role for norm in norms)
    return ", ".join(
        f"{count} {role.value.replace('_', ' ')}" for role, count in counts.most_common()
    )
