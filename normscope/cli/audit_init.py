"""`normscope audit --init`: targets -> the policy that they pass as they are today."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import typer

from normscope.audit.policy_file import POLICY_NAME, PROJECT_NAME
from normscope.audit.write_policy import policy_text
from normscope.cli.audit_question import AuditQuestion
from normscope.cli.audit_run import Means
from normscope.cli.failures import ExitStatus, tell_failure
from normscope.cli.inspect_answers import answers_to
from normscope.cli.inspect_request import Request
from normscope.cli.inspect_views import Views
from normscope.cli.options import Format
from normscope.cli.output import check_distinct, open_output, say
from normscope.cli.targets import files_named
from normscope.errors import UsageError
from normscope.inspection import Inspection, Uninspectable
from normscope.render.visible import visible


def init_policy(
    targets: Sequence[str], question: AuditQuestion, means: Means, output: Path | None
) -> ExitStatus:
    """Inspect the targets and write a policy of their families.

    One that cannot be inspected is told and left out; where none is left, nothing is written.
    Raises `UsageError` for what cannot be carried out.
    """
    _check(targets, output)
    replaced = output is not None and output.is_file()
    found: list[tuple[str, Inspection]] = []
    failed = False
    with open_output(output) as results:
        with closing(answers_to(targets, _request(question, means))) as answers:
            for answer in answers:
                if isinstance(answer, Uninspectable):
                    failed = True
                    tell_failure(answer)
                else:
                    found.append((answer.target, answer))
        if not found:
            raise typer.Exit(ExitStatus.UNANSWERED)  # a file that was there stays
        results.write(policy_text(found, Path() if output is None else output.parent))
    if replaced and not question.quiet:
        say(f"replaced {visible(str(output))}, which was there before")
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE


def refuse_with_init(options: Mapping[str, object]) -> None:
    """Raise `UsageError` for an option that was typed and that means nothing beside --init."""
    for option, value in options.items():
        if value:
            raise UsageError(
                f"--init writes a policy, and {option} has no part in that",
                f"leave out {option}, or audit without --init",
            )


def _check(targets: Sequence[str], output: Path | None) -> None:
    if not targets:
        raise UsageError("--init needs targets", f"normscope audit --init TARGET… -o {POLICY_NAME}")
    if output is not None and output.name == PROJECT_NAME:
        raise UsageError(
            f"--init writes a file of its own, and would replace the whole {PROJECT_NAME}",
            f"write it to {POLICY_NAME}, or copy it below [tool.normscope] by hand",
        )
    check_distinct({"--output": output}, files_named(targets))


def _request(question: AuditQuestion, means: Means) -> Request:
    return Request(
        format=Format.JSON,
        views=Views(verbose=question.verbose),
        revision=question.revision,
        dtype=question.dtype,
        offline=question.offline,
        trust_remote_code=question.trust_remote_code,
        weights=question.weights,
        verify=False,
        quiet=question.quiet,
        cache=means.cache,
        jobs=means.jobs,
        limits=means.limits,
        max_modules=question.limits.modules,
        max_operations=question.limits.operations,
    )
