"""NS502: a target that the lock file or the policy alone names."""

from normscope.audit.findings import Severity
from normscope.audit.rule import Need, Rule

RULE = Rule(
    code="NS502",
    title="target that only lock file or policy has",
    what="Compares the targets of the policy with those of the lock file. Checked where `--lock` "
    "is given.",
    severity=Severity.ERROR,
    why="A target that is not locked can change unseen, and one that the policy has lost is no "
    "longer looked at.",
    mend="Run `normscope audit --lock FILE --update-lock`, and review the difference of the file.",
    check=None,
    needs=Need.LOCK,
)
