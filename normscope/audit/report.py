"""The answer of `normscope audit`: what each target is, and what was found in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.audit.findings import Finding, Severity
from normscope.audit.policy import Place
from normscope.errors import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """What a lock file records of one stack."""

    path: str
    blocks: int
    placements: tuple[str, ...]
    """Each wiring of its blocks and which have it: `all: attention pre-norm x + f(N(x)), …`."""
    norms: tuple[str, ...]
    """Each distinct norm, its place, its facts behind their labels and how many blocks have it:
    `*.input_layernorm: RMSNorm role branch_input eps 1e-06 gain w … blocks all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What a target is, as a lock file records it: no times, no paths of this machine."""

    class_name: str
    model_type: str | None
    revision: str | None
    config: str | None
    """Digest of the config, 16 hexadecimal digits; None where there is no config of its own."""
    dtype: str
    parameters: int
    placement: str
    stacks: tuple[StackFacts, ...]
    outside: tuple[str, ...]
    """Norms outside of stacks, each as in `StackFacts.norms`."""
    norm_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchecked:
    """A rule that was selected and says nothing of a target, and why."""

    code: str
    reason: str
    """`no weights are at hand`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a target has no answer; the words of `normscope.failure/1`."""

    kind: FailureKind
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTarget:
    """One target: what was found, or why it could not be looked at."""

    target: str
    family: str
    place: Place | None = None
    """The line of the policy that names it."""
    facts: TargetFacts | None = None
    """None where it failed."""
    findings: tuple[Finding, ...] = ()
    """By code, then in order of execution."""
    checked: tuple[str, ...] = ()
    """Codes of the rules that were checked, sorted."""
    unchecked: tuple[Unchecked, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneFinding:
    """A finding of the baseline that is no more."""

    code: str
    target: str
    where: str
    found: str
    expected: str

    @property
    def identity(self) -> tuple[str, str, str, str, str]:
        """What tells it apart, as `Finding.identity`."""
        return (self.code, self.target, self.where, self.found, self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """One run: every target in the order of the policy."""

    versions: Mapping[str, str]
    """Of normscope, torch and transformers."""
    policy: str | None
    """The policy's file as it was named."""
    targets: tuple[AuditedTarget, ...]
    baseline: str | None = None
    """The baseline's file, where one was given: findings are `known` or not by it."""
    gone: tuple[GoneFinding, ...] = ()
    interrupted: bool = False
    """Whether it was ended before every target was answered."""
    shard: str | None = None
    """`2/5` where it was one part of several."""

    def findings(self, at_least: Severity = Severity.NOTE) -> tuple[Finding, ...]:
        """Return the findings that are new and as bad as that, in order of the targets."""
        return tuple(
            finding
            for target in self.targets
            for finding in target.findings
            if not finding.known and finding.severity.rank >= at_least.rank
        )

    @property
    def failed(self) -> tuple[AuditedTarget, ...]:
        """Return the targets without an answer."""
        return tuple(target for target in self.targets if target.failure is not None)
