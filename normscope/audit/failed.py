"""Assignment + what went wrong -> the audited target that has no answer."""

from normscope.audit.policy import Assignment
from normscope.audit.report import AuditedTarget, Failure
from normscope.errors import FailureKind, NormscopeError, UsageError


def failed_target(
    assignment: Assignment, kind: FailureKind, message: str, hint: str = ""
) -> AuditedTarget:
    """Return the answer of a target that could not be looked at.

    The message names it as the policy does, or not at all.
    """
    opened = f"{assignment.opened}: "
    return AuditedTarget(
        target=assignment.target,
        family=assignment.family,
        place=assignment.place,
        failure=Failure(kind=kind, message=message.removeprefix(opened), hint=hint),
    )


def failed_with(assignment: Assignment, error: NormscopeError | UsageError) -> AuditedTarget:
    """Return the answer of a target that an error ended; one that means nothing is not found."""
    kind = error.kind if isinstance(error, NormscopeError) else FailureKind.NOT_FOUND
    return failed_target(assignment, kind, error.message, error.hint)
