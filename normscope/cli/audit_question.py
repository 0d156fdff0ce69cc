"""What was typed for `audit` -> the question that is put to every target."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from normscope.audit.failed import failed_target
from normscope.audit.policy import Assignment, Measuring
from normscope.audit.report import AuditedTarget
from normscope.cli.output import teller
from normscope.cli.questions import Unknown
from normscope.inspection import Uninspectable
from normscope.limits import Limits
from normscope.weights.report import WeightsLevel

if TYPE_CHECKING:  # usage errors come before the analysis is imported
    from normscope.pipeline import InspectOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """How each target is found, inspected and measured; what it is held against comes with it."""

    revision: str | None = None
    dtype: str | None = None
    offline: bool = False
    trust_remote_code: bool = False
    weights: WeightsLevel | None = None
    quiet: bool = False
    verbose: bool = False
    limits: Limits = field(default_factory=Limits)
    cache_folder: Path | None = None
    """Where answers are kept; None for the user's cache folder."""
    measuring: Measuring | None = None

    @property
    def options(self) -> "InspectOptions":
        """How each target is found and built."""
        from normscope.pipeline import InspectOptions

        return InspectOptions(
            revision=self.revision,
            dtype=self.dtype,
            offline=self.offline,
            trust_remote_code=self.trust_remote_code,
            weights=self.weights,
            local_weights=WeightsLevel.NORMS,
            cache=True,
            cache_folder=self.cache_folder,
            limits=self.limits,
            tell=teller(quiet=self.quiet),
        )

    def target_of(self, task: Assignment) -> str:
        """Return the target as findings name it."""
        return task.target

    def ask(self, task: Assignment) -> AuditedTarget:
        """Inspect and judge one target."""
        from normscope.auditing import audit_target

        return audit_target(task, self.options, self.measuring)

    def recall(self, task: Assignment) -> AuditedTarget | Unknown:
        """Return what is known of one target without torch."""
        from normscope.auditing import recall_audited_target

        known, same = recall_audited_target(task, self.options, self.measuring)
        return Unknown(same=same) if known is None else known


def audited(task: Assignment, answer: AuditedTarget | Uninspectable) -> AuditedTarget:
    """Return an answer as the report has it, also one that was ended or that crashed."""
    if isinstance(answer, Uninspectable):
        return failed_target(task, answer.kind, answer.message, answer.hint)
    return answer
