"""Plan -> AuditReport: the targets are answered side by side, and told as they are known."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from normscope.audit.report import AuditedTarget, AuditReport
from normscope.cli.audit_formats import Reports
from normscope.cli.audit_kept import Kept
from normscope.cli.audit_plan import Plan
from normscope.cli.audit_progress import counting
from normscope.cli.audit_question import AuditQuestion, audited
from normscope.cli.interrupts import Interrupts
from normscope.cli.process_limits import ProcessLimits
from normscope.cli.side_by_side import answered_side_by_side
from normscope.versions import versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What an audit may take of the machine."""

    jobs: int
    limits: ProcessLimits
    cache: bool
    facts: bool = True
    """Whether the facts of every target are held to the end."""


def run_audit(
    plan: Plan, question: AuditQuestion, means: Means, reports: Reports, interrupts: Interrupts
) -> AuditReport:
    """Answer every target; what was finished before an interrupt is the report."""
    kept = Kept(facts=means.facts)
    interrupted = False
    try:
        with (
            _keeping(question, means) as asked,
            counting(len(plan.assignments), quiet=question.quiet) as counted,
            closing(_answers(plan, asked, means)) as answers,
        ):
            for number, answer in answers:
                with interrupts.held():
                    reports.answered(answer)
                    kept.take(number, answer)
                counted()
    except KeyboardInterrupt:
        interrupted = True
    targets = kept.in_order()
    return AuditReport(
        versions=versions(),
        policy=None if plan.policy is None else plan.policy.file,
        targets=targets,
        baseline=plan.records.baseline_file,
        gone=plan.records.gone(targets),
        interrupted=interrupted,
        shard=plan.shard,
    )


def _answers(
    plan: Plan, question: AuditQuestion, means: Means
) -> Generator[tuple[int, AuditedTarget], None, None]:
    tasks = plan.assignments
    jobs = max(1, min(means.jobs, len(tasks)))
    found = answered_side_by_side(tasks, question, jobs=jobs, limits=means.limits)
    with closing(found):
        for number, answer in found:
            task = tasks[number]
            yield number, plan.records.applied(audited(task, answer), task)
    if plan.tells_unnamed:
        yield from enumerate(plan.records.unnamed(plan.every), start=len(tasks))


@contextmanager
def _keeping(question: AuditQuestion, means: Means) -> Iterator[AuditQuestion]:
    """Keep answers for this run alone where no others shall be kept: equal configs are one."""
    if means.cache:
        yield question
        return
    with TemporaryDirectory(prefix="normscope-") as folder:
        yield replace(question, cache_folder=Path(folder))
