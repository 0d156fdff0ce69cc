"""A planned audit -> its reports, the files that it renews, and its exit status."""

from collections.abc import Sequence
from dataclasses import replace

from normscope.audit.baseline import baseline_text, updated_entries
from normscope.audit.findings import Severity
from normscope.audit.lock import CHANGED, UNLOCKED, lock_text, updated_facts
from normscope.audit.report import AuditReport
from normscope.audit.tally import tally_of
from normscope.cli.audit_formats import AuditFormat, Destination, audit_status, open_reports
from normscope.cli.audit_plan import Plan
from normscope.cli.audit_question import AuditQuestion
from normscope.cli.audit_run import Means, run_audit
from normscope.cli.failures import ExitStatus, tell_failure
from normscope.cli.interrupts import interruptible
from normscope.cli.output import open_output, say
from normscope.inspection import Uninspectable
from normscope.render.figures import counted
from normscope.render.visible import visible

_FOR_PEOPLE = frozenset({AuditFormat.TABLE, AuditFormat.MARKDOWN, AuditFormat.GITHUB})


def answer_audit(
    plan: Plan,
    question: AuditQuestion,
    means: Means,
    places: Sequence[Destination],
    *,
    explain: bool,
    fail_on: Severity,
) -> ExitStatus:
    """Run the audit and write all that was asked for; return the exit status.

    After a signal, what was finished is written, and neither lock file nor baseline is.
    """
    question = replace(question, measuring=plan.policy.measuring if plan.policy else None)
    written = {place.format for place in places}
    means = replace(means, facts=plan.files.update_lock or AuditFormat.JSON in written)
    with (
        interruptible() as interrupts,
        open_reports(places, explain=explain, fail_on=fail_on) as reports,
    ):
        report = run_audit(plan, question, means, reports, interrupts)
        with interrupts.held():
            reports.finish(report)
    _tell(report, places, question)
    if not (plan.files.update_lock or question.quiet):
        _warn_of_nothing_checked(report)
        _warn_of_lock_not_looked_at(plan)
    if not (plan.assignments or question.quiet):
        _tell_of_empty_shard(plan)
    if report.interrupted:
        done, of = len(report.targets), counted(len(plan.assignments), "target")
        say(f"interrupted after {done:,} of {of}")
        return ExitStatus.INTERRUPTED
    _renew(plan, report)
    _tell_written(plan, quiet=question.quiet)
    return audit_status(report, fail_on)


def _tell(report: AuditReport, places: Sequence[Destination], question: AuditQuestion) -> None:
    """Say on stderr what people would not see on stdout."""
    if any(place.path is None and place.format in _FOR_PEOPLE for place in places):
        return
    for target in report.failed:
        failure = target.failure
        if failure is not None:
            tell_failure(
                Uninspectable(
                    target=target.target,
                    kind=failure.kind,
                    message=failure.message,
                    hint=failure.hint,
                )
            )
    if question.quiet or any(place.path is None for place in places):
        return
    tally = tally_of(report)
    say(
        f"{counted(tally.targets, 'target')}: {counted(tally.findings, 'finding')}, "
        + (f"{tally.known:,} known, " if tally.known else "")
        + f"{tally.failed:,} failed"
    )


def _warn_of_nothing_checked(report: AuditReport) -> None:
    """Say that an audit without findings has looked for none."""
    answered = [target for target in report.targets if target.failure is None]
    if answered and not any(target.checked for target in answered):
        reasons = dict.fromkeys(one.reason for target in answered for one in target.unchecked)
        why = next(iter(reasons), "none is selected")
        say(f"warning: no rule could be checked in any target: {visible(why)}")


def _warn_of_lock_not_looked_at(plan: Plan) -> None:
    """Say that a lock file was named and no target is held against it."""
    selected = {code for each in plan.every for code in each.rules}
    if plan.files.lock is not None and not selected & {CHANGED, UNLOCKED}:
        shown = visible(str(plan.files.lock))
        say(
            f"warning: --lock {shown} is not looked at: {CHANGED} and {UNLOCKED} are not selected; "
            "select NS5 beside the others, with --select or in the policy, and do not ignore it"
        )


def _tell_of_empty_shard(plan: Plan) -> None:
    """Say that there are more shards than targets: nothing was left out."""
    of = counted(len({each.target for each in plan.every}), "target")
    say(f"shard {plan.shard} has no target: the whole audit has {of}")


def _renew(plan: Plan, report: AuditReport) -> None:
    """Write lock file and baseline where that was asked for; raises `UsageError`."""
    files = plan.files
    if files.update_lock and files.lock is not None:
        facts = updated_facts(report.targets, plan.before.lock, whole=plan.whole)
        with open_output(files.lock) as file:
            file.write(lock_text(facts))
    if files.update_baseline and files.baseline is not None:
        entries = updated_entries(report.targets, plan.before.baseline, whole=plan.whole)
        with open_output(files.baseline) as file:
            file.write(baseline_text(entries))


def _tell_written(plan: Plan, *, quiet: bool) -> None:
    written = [
        str(path)
        for path, update in (
            (plan.files.lock, plan.files.update_lock),
            (plan.files.baseline, plan.files.update_baseline),
        )
        if update
    ]
    if written and not quiet:
        say(f"wrote {visible(' and '.join(written))}")
