"""Policy -> AuditReport: every target inspected, measured where it can be, and judged."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from normscope.audit.assign import assign
from normscope.audit.failed import failed_with
from normscope.audit.judge import judge
from normscope.audit.measurable import why_unmeasured
from normscope.audit.policy import Assignment, Measuring, Policy
from normscope.audit.policy_file import read_policy
from normscope.audit.records import Records, read_records
from normscope.audit.report import AuditedTarget, AuditReport
from normscope.audit.unread import why_unread
from normscope.cache import code_stays, keep_audited, recall_audited
from normscope.checkpoint import Checkpoint
from normscope.errors import NormscopeError, UsageError
from normscope.inspection import Inspection
from normscope.pipeline import (
    InspectOptions,
    answer_key,
    inspect_resolved,
    recall_resolved,
    resolve_target,
)
from normscope.statistics import Statistics
from normscope.versions import versions
from normscope.weights.report import WeightsLevel

_log = logging.getLogger(__name__)


def audit_families(
    policy: Policy | Path | str,
    targets: Sequence[str] = (),
    options: InspectOptions | None = None,
    *,
    lock: Path | str | None = None,
    baseline: Path | str | None = None,
) -> AuditReport:
    """Hold every target of a policy, or those of `targets` alone, against what it expects.

    `policy` is a file, or what was read of one. A target that fails is part of the report.
    `options` default to reading the norms' values where the weights lie here. Facts that differ
    from the `lock` file are findings, and those that the `baseline` file has are `known`. Raises
    `UsageError` where one of the files is wrong, or a pattern of the policy matches nothing.
    """
    found = policy if isinstance(policy, Policy) else read_policy(Path(policy))
    records = read_records(lock, baseline)
    assignments = assign(found, targets)
    options = options or InspectOptions(local_weights=WeightsLevel.NORMS)
    with code_stays(), TemporaryDirectory() as folder:
        if not options.cache:  # equal configs are inspected once all the same
            options = replace(options, cache=True, cache_folder=Path(folder))
        audited = [_held(each, options, found.measuring, records) for each in assignments]
    if not targets:
        audited.extend(records.unnamed(assignments))
    return AuditReport(
        versions=versions(),
        policy=found.file,
        targets=tuple(audited),
        baseline=records.baseline_file,
        gone=records.gone(audited),
    )


def _held(
    assignment: Assignment, options: InspectOptions, measuring: Measuring | None, records: Records
) -> AuditedTarget:
    return records.applied(audit_target(assignment, options, measuring), assignment)


def audit_target(
    assignment: Assignment, options: InspectOptions, measuring: Measuring | None = None
) -> AuditedTarget:
    """Inspect one target, measure it where there is something to measure on, and judge it.

    Whatever is wrong with the target is its answer.
    """
    key = None
    try:
        checkpoint = resolve_target(assignment.opened, options)
        key = _key(assignment, checkpoint, options, measuring)
        inspection = inspect_resolved(checkpoint, options)
        audited = _judged(assignment, checkpoint, inspection, options, measuring)
    except (NormscopeError, UsageError) as error:
        _log.debug("%s has no answer", assignment.target, exc_info=error)
        audited = failed_with(assignment, error)
    if key is not None:
        keep_audited(key, assignment, options.limits, audited, options.cache_folder)
    return audited


def recall_audited_target(
    assignment: Assignment, options: InspectOptions, measuring: Measuring | None = None
) -> tuple[AuditedTarget | None, str | None]:
    """Return what is known of a target without building it, and what its work is the same as.

    The second is equal for targets with one inspection, and None where that cannot be told.
    """
    try:
        checkpoint = resolve_target(assignment.opened, options)
    except (NormscopeError, UsageError) as error:
        return failed_with(assignment, error), None
    key = _key(assignment, checkpoint, options, measuring)
    if key is None:
        return None, None
    known = recall_audited(key, assignment, options.limits, options.cache_folder)
    inspection = recall_resolved(checkpoint, options) if known is None else None
    if inspection is not None:
        known = _judged(assignment, checkpoint, inspection, options, measuring)
        keep_audited(key, assignment, options.limits, known, options.cache_folder)
    return known, key


def _judged(
    assignment: Assignment,
    checkpoint: Checkpoint,
    inspection: Inspection,
    options: InspectOptions,
    measuring: Measuring | None,
) -> AuditedTarget:
    measured = _measured(assignment, checkpoint, options, measuring)
    return judge(
        assignment,
        replace(inspection, target=assignment.target),
        measured if isinstance(measured, Statistics) else None,
        unmeasured=measured if isinstance(measured, str) else "",
        unread=why_unread(checkpoint, inspection),
        config=checkpoint.config,
    )


def _key(
    assignment: Assignment,
    checkpoint: Checkpoint,
    options: InspectOptions,
    measuring: Measuring | None,
) -> str | None:
    """No measurement is kept."""
    measured = why_unmeasured(assignment, checkpoint, measuring) is None
    return None if measured else answer_key(checkpoint, options)


def _measured(
    assignment: Assignment,
    checkpoint: Checkpoint,
    options: InspectOptions,
    measuring: Measuring | None,
) -> Statistics | str:
    """Return the statistics on the policy's input, or why there are none."""
    reason = why_unmeasured(assignment, checkpoint, measuring)
    if measuring is None or reason is not None:
        return reason or ""
    from normscope.activations.policy_input import measure_on_policy_input

    measured = measure_on_policy_input(
        assignment.opened,
        measuring,
        dtype=options.dtype,
        revision=options.revision,
        offline=options.offline,
        trust_remote_code=options.trust_remote_code,
    )
    if isinstance(measured, str):  # without the target: the same reason of many is said once
        return measured.removeprefix(f"{assignment.opened}: ")
    return measured
