"""Reports of many targets: the work grows with them, and what GitHub limits does not."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from golden.audit_reports import alike, large
from normscope.audit.join_runs import joined_report
from normscope.cli.audit_formats import AuditFormat, audit_text
from normscope.render.page import PLAIN, Page


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions, so that no clock decides."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_the_count_sees_what_is_quadratic() -> None:
    def pairs(size: int) -> list[int]:
        return [abs(a - b) for a in range(size) for b in range(size)]

    assert calls_of(lambda: pairs(40)) > 3 * calls_of(lambda: pairs(20))


@pytest.mark.parametrize("made", [large, alike])
@pytest.mark.parametrize("written", list(AuditFormat))
def test_twice_the_targets_is_twice_the_work(
    written: AuditFormat, made: Callable[..., Any]
) -> None:
    once, twice = made(40), made(80)
    page = Page(width=80)
    first = calls_of(lambda: audit_text(once, written, page))
    assert calls_of(lambda: audit_text(twice, written, page)) < 2.3 * first


def test_joining_is_linear() -> None:
    once, twice = (audit_text(large(size), AuditFormat.JSONL, PLAIN) for size in (40, 80))
    first = calls_of(lambda: joined_report([("a", once)]))
    assert calls_of(lambda: joined_report([("a", twice)])) < 2.3 * first


def test_what_github_limits_stays_small() -> None:
    report = large(1_000, 5)
    assert len(audit_text(report, AuditFormat.GITHUB, PLAIN).splitlines()) == 2 + 10
    assert len(audit_text(report, AuditFormat.MARKDOWN, PLAIN)) <= 65_536


def test_everything_else_is_whole() -> None:
    report = large(200, 5)
    for written, each in (
        (AuditFormat.JSON, '"fingerprint"'),
        (AuditFormat.SARIF, '"normscope/v1"'),
        (AuditFormat.TABLE, "    at   "),
    ):
        assert audit_text(report, written, PLAIN).count(each) == 1_000
