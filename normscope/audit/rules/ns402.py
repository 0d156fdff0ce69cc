"""NS402: a token that stands out from all others."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`."""
    yield from measured(subject, "NS402", "sink at {token}", "no such token")


RULE = Rule(
    code="NS402",
    title="token that stands out (attention sink)",
    what="Looks for a token whose variance before a norm is over 100 times that of the median "
    "token, wherever it stands.",
    severity=Severity.WARNING,
    why="Such tokens draw attention to themselves and distort every average over tokens. They are "
    "often the first one, and not always.",
    mend="Leave such tokens out of averages (`normscope stats --exclude-special`), keep them when "
    "a cache is cut, or accept them with a budget.",
    check=check,
    needs=Need.STATISTICS,
)
