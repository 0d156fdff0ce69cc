"""`normscope audit`: a policy and its targets -> what was found, in the formats asked for."""

from pathlib import Path
from typing import Annotated

import typer

from normscope.audit.findings import Severity
from normscope.cli.audit_formats import (
    AuditFormatsOption,
    ExplainOption,
    FailOnOption,
    destinations,
)
from normscope.cli.budgets import read_budget
from normscope.cli.options import (
    TARGET_HELP,
    DtypeOption,
    JobsOption,
    MaxModulesOption,
    MaxOperationsOption,
    MemoryLimitOption,
    NoCacheOption,
    OfflineOption,
    OutputOption,
    QuietOption,
    RevisionOption,
    TimeoutOption,
    TrustOption,
    VerboseOption,
)
from normscope.cli.process_limits import read_limits
from normscope.cli.targets import named_targets
from normscope.weights.report import WeightsLevel


def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help=f"{TARGET_HELP} [default: those of the policy]"),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="FILE",
            help="What is expected of which targets. [default: normscope.toml here, else "
            "tool.normscope in pyproject.toml]",
        ),
    ] = None,
    init: Annotated[
        bool,
        typer.Option("--init", help="Write the policy that the targets pass today, and no more."),
    ] = False,
    formats: AuditFormatsOption = None,
    output: OutputOption = None,
    lock: Annotated[
        Path | None,
        typer.Option("--lock", metavar="FILE", help="Find what differs from the facts in FILE."),
    ] = None,
    update_lock: Annotated[
        bool, typer.Option("--update-lock", help="Write the facts of this run to the lock file.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Accept the findings recorded in FILE."),
    ] = None,
    update_baseline: Annotated[
        bool,
        typer.Option("--update-baseline", help="Record the findings of this run as accepted."),
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="CODES",
            help="Rules to check, or what they begin with: NS1,NS203. Comes before the policy's.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="CODES", help="Rules to leave out, beside the policy's."),
    ] = None,
    fail_on: FailOnOption = Severity.WARNING,
    explain: ExplainOption = False,
    jobs: JobsOption = 1,
    timeout: TimeoutOption = None,
    memory_limit: MemoryLimitOption = None,
    max_modules: MaxModulesOption = None,
    max_operations: MaxOperationsOption = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Audit one of N equal parts of the targets."),
    ] = None,
    weights: Annotated[
        WeightsLevel | None,
        typer.Option(
            "--weights",
            help="Read nothing of the weights, their headers, or also the norms' values. "
            "[default: the norms' values where the weights lie here]",
        ),
    ] = None,
    revision: RevisionOption = None,
    dtype: DtypeOption = None,
    offline: OfflineOption = False,
    trust_remote_code: TrustOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_cache: NoCacheOption = False,
) -> None:
    """Hold targets against the rules and against what a policy expects of them.

    The exit status is 3 where a target could not be looked at, else 1 where something new was
    found at or above --fail-on, else 0; the same in every format.
    """
    # The rules and the formats are not needed to show a help text.
    from normscope.cli.audit_answer import answer_audit
    from normscope.cli.audit_files import check_written
    from normscope.cli.audit_init import init_policy, refuse_with_init
    from normscope.cli.audit_plan import RecordFiles, Selection, plan_audit, read_codes
    from normscope.cli.audit_question import AuditQuestion
    from normscope.cli.audit_run import Means

    process = read_limits(timeout, memory_limit)
    question = AuditQuestion(
        revision=revision,
        dtype=None if dtype is None else dtype.value,
        offline=offline,
        trust_remote_code=trust_remote_code,
        weights=weights,
        quiet=quiet,
        verbose=verbose,
        limits=read_budget(process, modules=max_modules, operations=max_operations),
    )
    means = Means(jobs=jobs, limits=process, cache=not no_cache)
    if init:
        records = {"--lock": lock, "--baseline": baseline, "--shard": shard, "--select": select}
        refuse_with_init({"--policy": policy, "--format": formats, **records})
        names = named_targets(targets) if targets else []
        raise typer.Exit(init_policy(names, question, means, output))
    places = destinations(formats, output)
    plan = plan_audit(
        targets or [],
        policy,
        Selection(select=read_codes(select), ignore=read_codes(ignore)),
        RecordFiles(
            lock=lock,
            update_lock=update_lock,
            baseline=baseline,
            update_baseline=update_baseline,
        ),
        shard,
    )
    check_written(plan, places)
    raise typer.Exit(answer_audit(plan, question, means, places, explain=explain, fail_on=fail_on))
