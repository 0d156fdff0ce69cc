import re
from dataclasses import replace

import pytest

from golden.audit_reports import HOSTILE, alike, clean, everything, hostile, large
from normscope.audit.report import AuditReport
from normscope.render.audit_markdown import COMMENT_BYTES, render_audit_markdown


@pytest.mark.parametrize("report", [large(), alike(), hostile()], ids=["large", "alike", "hostile"])
@pytest.mark.parametrize("most", [COMMENT_BYTES, 5_000])
def test_it_is_never_longer_than_asked(report: AuditReport, most: int) -> None:
    text = render_audit_markdown(report, most_bytes=most)
    assert len(text.encode()) <= most
    assert text.startswith("### normscope audit: ")


def test_what_does_not_fit_is_counted() -> None:
    text = render_audit_markdown(large())
    shown = sum(line.startswith("| `NS106` | error | eps") for line in text.splitlines())
    left_out = re.search(r"^and ([\d,]+) more, left out", text, flags=re.MULTILINE)
    assert shown + int(left_out[1].replace(",", "")) == 5_000
    assert shown > 200


def test_more_room_is_used() -> None:
    more = render_audit_markdown(large(), most_bytes=1_000_000)
    assert 500_000 < len(more.encode()) <= 1_000_000


def test_one_giant_row_hides_no_other() -> None:
    report = everything()
    first, *others = report.targets[1].findings
    giant = replace(first, message="x" * 100_000)
    target = replace(report.targets[1], findings=(giant, *others))
    report = replace(report, targets=(*report.targets[2:], target))
    text = render_audit_markdown(report, most_bytes=9_000)
    assert "the block is post-norm" in text
    assert "and 1 more, left out" in text


def test_failures_leave_room_for_findings() -> None:
    report = large()
    broken = everything().failed[0]
    many = tuple(replace(broken, target=f"{number:09}") for number in range(10_000))
    text = render_audit_markdown(replace(report, targets=(*many, *report.targets)))
    assert text.count("| `NS106` | error | eps") > 100
    assert text.count("there is no config") > 100


def test_a_long_list_of_targets_is_folded() -> None:
    text = render_audit_markdown(alike())
    assert "<details><summary>1,000 targets</summary>`checkpoints/00000`<br>" in text
    assert "and 950 more</details>" in text


def test_no_one_is_mentioned() -> None:
    text = render_audit_markdown(hostile())
    assert HOSTILE.count("@all") == 1
    assert "@&#8203;all" in text


def test_a_clean_run_is_short() -> None:
    targets = tuple(replace(target, unchecked=()) for target in clean().targets)
    assert render_audit_markdown(replace(clean(), targets=targets)) == (
        "### normscope audit: no findings\n\n"
        "2 targets of 1 family in `ci/normscope.toml`: 2 targets clean.\n"
    )


def test_an_explanation_is_given_when_asked_for() -> None:
    assert "`NS101`: A block whose norms" in render_audit_markdown(everything(), explain=True)
    assert "A block whose norms" not in render_audit_markdown(everything())
