"""Lock file and baseline, as one run is held against them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from normscope.audit.baseline import Baseline, apply_baseline, read_baseline
from normscope.audit.lock import Lock, against_lock, read_lock, unnamed_targets
from normscope.audit.policy import Assignment
from normscope.audit.report import AuditedTarget, GoneFinding

_Identity = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What earlier runs wrote down; None for what this run is not held against."""

    lock: Lock | None = None
    baseline: Baseline | None = None
    known: frozenset[_Identity] = frozenset()
    """Of the findings in the baseline."""
    accepted: bool = False
    """Whether all that is found is known from now on."""

    @property
    def baseline_file(self) -> str | None:
        """The baseline's file as it was named."""
        return None if self.baseline is None else self.baseline.file

    def applied(self, target: AuditedTarget, assignment: Assignment) -> AuditedTarget:
        """Add what differs from the lock file, and mark what is known."""
        if self.lock is not None:
            target = against_lock(target, self.lock, assignment.rules)
        return self._marked(target)

    def unnamed(self, assignments: Iterable[Assignment]) -> tuple[AuditedTarget, ...]:
        """Return the targets that the lock file has and the whole policy no longer names."""
        if self.lock is None:
            return ()
        return tuple(self._marked(each) for each in unnamed_targets(self.lock, assignments))

    def gone(self, targets: Sequence[AuditedTarget]) -> tuple[GoneFinding, ...]:
        """Return the findings of the baseline that this run looked for and did not find."""
        return () if self.baseline is None else apply_baseline(targets, self.baseline)[1]

    def _marked(self, target: AuditedTarget) -> AuditedTarget:
        if not self.known and not self.accepted:
            return target
        marked = (
            replace(finding, known=self.accepted or finding.identity in self.known)
            for finding in target.findings
        )
        return replace(target, findings=tuple(marked))


def read_records(
    lock: Path | str | None, baseline: Path | str | None, *, accepted: bool = False
) -> Records:
    """Read the files that are named; raises `UsageError` for one that is wrong."""
    found = None if baseline is None else read_baseline(Path(baseline))
    return Records(
        lock=None if lock is None else read_lock(Path(lock)),
        baseline=found,
        known=frozenset(entry.identity for entry in (found.entries if found else ())),
        accepted=accepted,
    )
