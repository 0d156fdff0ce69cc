"""Findings of `stats` -> observations of the rules NS401 to NS406.

Where a value is largest changes with a little noise on the weights, where it begins hardly ever:
a finding is at the block in which it is first seen, and its message names the norm.
"""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.rule import Subject
from normscope.audit.stacks import block_around, blocks_by_path
from normscope.statistics import StatisticsFinding, Token


def measured(subject: Subject, code: str, found: str, expected: str) -> Iterator[Observation]:
    """Yield the findings of one code; `found` with the channel and the token put in.

    Their messages name norms and blocks: each is about the whole model, and none has its like.
    """
    if subject.statistics is None:
        return
    blocks = blocks_by_path(subject.inspection)
    for finding in subject.statistics.findings:
        if finding.code == code:
            where = finding.first or finding.where
            yield Observation(
                where=where,
                message=finding.message,
                found=found.format(channel=finding.channel, token=_token(finding)),
                expected=expected,
                severity=Severity(finding.severity),
                block=block_around(where, blocks),
            )


def _token(finding: StatisticsFinding) -> str:
    """Return the token by its id: its text may hold anything."""
    token: Token | None = finding.token
    if token is None:
        return "row"
    return f"token at {token.position}" if token.id is None else f"token id {token.id}"
