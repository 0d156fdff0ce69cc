"""NS501: a fact that differs from what the lock file recorded."""

from normscope.audit.findings import Severity
from normscope.audit.rule import Need, Rule

RULE = Rule(
    code="NS501",
    title="fact that differs from the lock file",
    what="Compares what each target is (revision, config, placement of each stack, kinds, eps, "
    "gain forms, dtypes, counts) with what `normscope.lock` recorded, fact by fact. Checked where "
    "`--lock` is given.",
    severity=Severity.ERROR,
    why="A new version of a library that changes a forward, or a checkpoint that was uploaded "
    "again with another eps, changes what is computed and nothing else tells it.",
    mend="Look at the change. Where it is meant, run `normscope audit --lock FILE --update-lock` "
    "and review the difference of the file.",
    check=None,
    needs=Need.LOCK,
)
