"""NS105: a norm that was built and never ran, or not as often as its siblings."""

from collections import Counter
from collections.abc import Iterator, Mapping

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import block_around, blocks_by_path, norms_of, numberless, place_in
from normscope.inspection import BlockReport, Inspection, NormReport


def check(subject: Subject) -> Iterator[Observation]:
    """Find idle norms, and norms whose number of runs differs from most at their place."""
    yield from _idle(subject.inspection)
    for stack in subject.inspection.stacks:
        places: dict[str, list[tuple[BlockReport, NormReport]]] = {}
        for block, norm in norms_of(subject.inspection, stack):
            if norm.call == 0:
                places.setdefault(place_in(block, norm.name), []).append((block, norm))
        for siblings in places.values():
            yield from _uneven(siblings)


def _idle(inspection: Inspection) -> Iterator[Observation]:
    blocks = blocks_by_path(inspection)
    ran = _what_ran(inspection)
    at_work = {numberless(norm.name) for norm in inspection.norms if norm.calls}
    for norm in inspection.norms:
        if norm.calls:
            continue
        bypassed = numberless(norm.name) in at_work or _owner(norm.name) in ran
        yield Observation(
            where=norm.name,
            message="it was built and never ran"
            + ("" if bypassed else ", and neither did the module that holds it"),
            found="no run",
            expected="a run",
            severity=None if bypassed else Severity.NOTE,
            block=block_around(norm.name, blocks),
            likeness=_likeness(norm.name, blocks),
        )


def _likeness(name: str, blocks: Mapping[str, BlockReport]) -> str | None:
    return None if block_around(name, blocks) is not None else numberless(name)


def _what_ran(inspection: Inspection) -> set[str]:
    """Return the modules that certainly ran: those around norms, readers, blocks and adds."""
    seen = [norm.name.partition(":")[0] for norm in inspection.norms if norm.calls]
    seen += [reader for norm in inspection.norms for reader in norm.readers]
    seen += [block.path for block in inspection.blocks]
    seen += [branch.add or "" for block in inspection.blocks for branch in block.branches]
    around = {""}
    for path in seen:
        while path and path not in around:
            around.add(path)
            path = path.rpartition(".")[0]
    return around


def _owner(name: str) -> str:
    """Return the module whose forward would run the norm; the list of `norms.3` runs nothing."""
    owner, _, own = name.rpartition(".")
    while own.isdecimal() and owner:
        owner, _, own = owner.rpartition(".")
    return owner


def _uneven(siblings: list[tuple[BlockReport, NormReport]]) -> Iterator[Observation]:
    ranked = Counter(norm.calls for _, norm in siblings).most_common(2)
    if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
        return
    usual = ranked[0][0]
    for block, norm in siblings:
        if norm.calls != usual:
            yield Observation(
                where=norm.name,
                message=f"it ran {_times(norm.calls)}, and most at its place {_times(usual)}",
                found=_times(norm.calls),
                expected=_times(usual),
                block=block,
            )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


RULE = Rule(
    code="NS105",
    title="norm that did not run as often as its siblings",
    what="Looks for norms that were built and never ran in one forward pass, and for norms that "
    "ran another number of times than those at the same place of other blocks. A note where the "
    "module that holds the norm did not run either: another input or the training mode may run "
    "it.",
    severity=Severity.WARNING,
    why="A norm with weights that no forward pass uses is trained, saved and ported for nothing, "
    "or was bypassed by mistake.",
    mend="See which code path would run it: a flag of the config, another input, or the training "
    "mode alone.",
    check=check,
)
