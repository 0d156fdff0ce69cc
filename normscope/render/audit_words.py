"""What an audit found -> the words that its formats share."""

from collections.abc import Iterable, Iterator, Sequence

from normscope.audit.findings import Finding, Severity
from normscope.audit.groups import FindingGroup, UncheckedGroup, block_numbers, same_blocks
from normscope.audit.rules import rule_of
from normscope.audit.tally import Tally
from normscope.render.figures import all_of, counted, index_ranges
from normscope.render.inert import inert

INTERRUPTED = "not every target was answered: the audit is not complete"


def findings_text(tally: Tally) -> str:
    """Return how many findings of each severity: `2 errors and 1 note`; `no findings`."""
    return severities_text(tally) or "no findings"


def severities_text(tally: Tally) -> str:
    """Return the counts of what was found, the worst first; "" for nothing."""
    return all_of(
        counted(tally.severities[severity], severity.value)
        for severity in reversed(Severity)
        if tally.severities[severity]
    )


def targets_text(tally: Tally) -> str:
    """Return `48 targets of 4 families`."""
    families = f" of {_families(tally.families)}" if tally.families else ""
    return f"{counted(tally.targets, 'target')}{families}"


def _families(count: int) -> str:
    return f"{count:,} {'family' if count == 1 else 'families'}"


def rest_texts(tally: Tally, baseline: str | None) -> Iterator[str]:
    """Yield what the count of findings leaves out: clean and failed targets, the baseline."""
    yield f"{counted(tally.clean, 'target')} clean"
    if tally.failed:
        yield f"{counted(tally.failed, 'target')} could not be inspected"
    if tally.known:
        named = "" if baseline is None else f" ({inert(baseline)})"
        yield f"{counted(tally.known, 'finding')} known{named}"
    if tally.gone:
        yield f"{counted(tally.gone, 'finding')} of the baseline gone"


def rule_title(code: str) -> str:
    """Return what a rule finds; "" for a code of another version."""
    rule = rule_of(code)
    return "" if rule is None else rule.title


def blocks_text(finding: Finding) -> str:
    """Return which of a stack's blocks: `blocks 0-11`; "" for one place outside of blocks."""
    numbers = block_numbers(finding)
    if numbers:
        return f"{'block' if len(set(numbers)) == 1 else 'blocks'} {index_ranges(numbers)}"
    return counted(len(finding.places), "place") if len(finding.places) > 1 else ""


def where_texts(group: FindingGroup) -> list[str]:
    """Return each place of a group, with its blocks where they are the same in every target."""
    return [
        text
        for where, findings in group.places.items()
        if (text := _joined((inert(where), _shared_blocks(findings))))
    ]


def _shared_blocks(findings: Sequence[Finding]) -> str:
    return "" if same_blocks(findings) is None else blocks_text(findings[0])


def target_texts(group: FindingGroup) -> list[str]:
    """Return each target, with its blocks where they differ among the targets."""
    if all(same_blocks(findings) is not None for findings in group.places.values()):
        return [inert(target) for target in group.targets]
    texts = (
        f"{inert(finding.target)} ({blocks_text(finding) or 'one place'})"
        for finding in group.findings
    )
    return list(dict.fromkeys(texts))


def unchecked_text(group: UncheckedGroup) -> str:
    """Return `NS301, NS302 in 12 targets (no weights are at hand)`."""
    codes = ", ".join(map(inert, group.codes))
    return f"{codes} in {counted(group.targets, 'target')} ({inert(group.reason)})"


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(text for text in texts if text)
