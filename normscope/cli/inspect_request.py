"""What was typed for `inspect` -> the two questions that are put to the pipeline."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from normscope.cli.budgets import read_budget
from normscope.cli.inspect_views import Views
from normscope.cli.options import Format
from normscope.cli.output import teller
from normscope.cli.process_limits import ProcessLimits
from normscope.cli.questions import Unknown
from normscope.inspection import Answer
from normscope.weights.report import WeightsLevel

if TYPE_CHECKING:  # usage errors come before the analysis is imported
    from normscope.pipeline import InspectOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was typed, without the targets and the output: the question that each is asked."""

    format: Format
    views: Views
    revision: str | None
    dtype: str | None
    offline: bool
    trust_remote_code: bool
    weights: WeightsLevel | None
    verify: bool
    quiet: bool
    cache: bool
    jobs: int
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    max_modules: int | None = None
    max_operations: int | None = None

    @property
    def verbose(self) -> bool:
        """Whether warnings of libraries and tracebacks of failures are shown."""
        return self.views.verbose

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
            verify=self.verify,
            cache=self.cache,
            limits=read_budget(
                self.limits, modules=self.max_modules, operations=self.max_operations
            ),
            tell=teller(quiet=self.quiet),
        )

    def target_of(self, task: str) -> str:
        """Return the target, which is the task itself."""
        return task

    def ask(self, task: str) -> Answer:
        """Inspect one target."""
        return ask(task, self)

    def recall(self, task: str) -> Answer | Unknown:
        """Return what is known of one target without torch."""
        known = recall(task, self)
        return Unknown() if known is None else known


def ask(target: str, request: Request) -> Answer:
    """Inspect one target; brings in torch where no answer is kept."""
    from normscope.pipeline import inspect_checkpoint

    return inspect_checkpoint(target, request.options)


def recall(target: str, request: Request) -> Answer | None:
    """Return what is known of one target without torch."""
    from normscope.pipeline import recall_checkpoint

    return recall_checkpoint(target, request.options)
