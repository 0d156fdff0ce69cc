"""NS105: a norm that was built and never ran, or not as often as its siblings."""

from collections import Counter
from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Rule, Subject
from normscope.inspection import BlockReport, NormReport


def check(subject: Subject) -> Iterator[Observation]:
    """Find idle norms, and norms whose number of runs differs from most at their place."""
    inspection = subject.inspection
    blocks = {block.path: block for block in inspection.blocks}
    places: dict[str, list[NormReport]] = {}
    for norm in inspection.norms:
        if not norm.calls:
            yield Observation(where=norm.name, message="it was built and never ran", found="0 runs")
        elif norm.call == 0 and norm.block in blocks:
            places.setdefault(_place(norm, blocks[norm.block]), []).append(norm)
    for siblings in places.values():
        yield from _uneven(siblings, blocks)


def _place(norm: NormReport, block: BlockReport) -> str:
    return norm.name.replace(f"{block.stack}.{block.index}", f"{block.stack}.*", 1)


def _uneven(siblings: list[NormReport], blocks: dict[str, BlockReport]) -> Iterator[Observation]:
    ranked = Counter(norm.calls for norm in siblings).most_common(2)
    if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
        return
    usual = ranked[0][0]
    for norm in siblings:
        if norm.calls != usual:
            block = blocks[norm.block or ""]
            yield Observation(
                where=norm.name,
                message=f"it ran {norm.calls} times, and most at its place {usual} times",
                found=f"{norm.calls} runs",
                expected=f"{usual} runs",
                block=block,
            )


RULE = Rule(
    code="NS105",
    title="norm that did not run as often as its siblings",
    severity=Severity.WARNING,
    why="A norm with weights that no forward pass uses is trained, saved and ported for nothing, "
    "or was bypassed by mistake.",
    mend="See which code path would run it: a flag of the config, or the training mode alone.",
    check=check,
)
