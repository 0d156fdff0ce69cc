"""`normscope audit --init`: targets -> the policy that they pass as they are today."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from normscope.audit.write_policy import policy_text
from normscope.cli.audit_question import AuditQuestion
from normscope.cli.audit_run import Means
from normscope.cli.failures import ExitStatus, tell_failure
from normscope.cli.inspect_answers import answers_to
from normscope.cli.inspect_request import Request
from normscope.cli.inspect_views import Views
from normscope.cli.options import Format
from normscope.cli.output import open_output
from normscope.errors import UsageError
from normscope.inspection import Inspection, Uninspectable


def init_policy(
    targets: Sequence[str], question: AuditQuestion, means: Means, output: Path | None
) -> ExitStatus:
    """Inspect the targets and write a policy of their families.

    One that cannot be inspected is told and left out. Raises `UsageError` where none is left.
    """
    if not targets:
        raise UsageError("--init needs targets", "normscope audit --init TARGET… -o normscope.toml")
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
        if found or not failed:
            results.write(policy_text(found, Path() if output is None else output.parent))
    return ExitStatus.UNANSWERED if failed else ExitStatus.DONE


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
