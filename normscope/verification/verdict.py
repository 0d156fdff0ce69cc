"""What a verification found: each verdict beside what the numbers say; knows no torch."""

from dataclasses import dataclass

from normscope.inspection import BranchKind, Placement, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBranch:
    """One reported branch beside what interventions on a running copy show of it."""

    block: str
    branch: int
    """Position of the branch in the block's report."""
    kind: BranchKind
    reported: Placement
    observed: Placement
    sites: tuple[Site, ...]
    """The sites at which the numbers show a norm."""
    agrees: bool
    seen_in: str
    """The block of the copy that was observed: `block` itself, or one like it."""
    detail: tuple[str, ...] = ()
    """What was seen, one sentence an intervention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCheck:
    """One fact of one norm, as reported and as recovered from its outputs."""

    fact: str
    """`kind`, `axes`, `groups`, `gain`, `bias`, `eps` or `eps_position`."""
    reported: str
    observed: str
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedNorm:
    """One norm module beside what a probe from outside recovers."""

    name: str
    module: str
    checks: tuple[NormCheck, ...]

    @property
    def agrees(self) -> bool:
        """Whether every fact does."""
        return all(check.agrees for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """A verdict that the numbers say nothing about, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdicts of one inspection that were checked, and those that were not."""

    target: str
    copy: str
    """What was run: `3 of 32 layers, 1/16 of the width, 0.4M parameters`."""
    branches: tuple[VerifiedBranch, ...]
    norms: tuple[VerifiedNorm, ...]
    not_checked: tuple[NotChecked, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing that was checked disagrees."""
        return all(branch.agrees for branch in self.branches) and all(
            norm.agrees for norm in self.norms
        )
