from dataclasses import replace

from golden.audit_reports import alike, clean, everything, failed, typed
from normscope.errors import FailureKind
from normscope.render.audit_table import render_audit_table
from normscope.render.page import PLAIN, Page

TERMINAL = Page(width=80)


def test_a_clean_run_is_one_line() -> None:
    targets = tuple(replace(target, unchecked=()) for target in clean().targets)
    text = render_audit_table(replace(clean(), targets=targets), TERMINAL)
    assert text == ("2 targets of 1 family in ci/normscope.toml: 4 rules checked, no findings\n")


def test_known_findings_alone_are_a_clean_run() -> None:
    targets = everything().targets[:1]
    text = render_audit_table(replace(everything(), targets=targets, gone=()), PLAIN)
    assert "no findings, 1 finding known" in text


def test_an_interrupted_run_is_never_clean() -> None:
    text = render_audit_table(replace(clean(), interrupted=True), PLAIN)
    assert "the audit is not complete" in text


def test_one_group_names_all_its_targets_in_a_pipe() -> None:
    text = render_audit_table(alike(), PLAIN)
    assert text.count("checkpoints/") == 1_000
    assert len(text.splitlines()) == 8


def test_a_terminal_gets_some_names_and_the_count() -> None:
    text = render_audit_table(alike(), TERMINAL)
    assert text.count("checkpoints/") == 20
    assert "and 980 more" in text


def test_failures_are_counted_beyond_what_a_terminal_shows() -> None:
    one = failed("x", 1, FailureKind.CORRUPT, "it is broken", "fetch it again")
    targets = tuple(replace(one, target=f"x{number}") for number in range(30))
    text = render_audit_table(replace(typed(), targets=targets), TERMINAL)
    assert text.count("it is broken") == 20
    assert "and 10 more" in text
    assert text.count("hint: fetch it again") == 1


def test_an_explanation_is_said_once_a_rule() -> None:
    report = everything()
    other = tuple(
        replace(
            target,
            findings=tuple(replace(one, message="other") for one in target.findings),
        )
        for target in report.targets
    )
    twice = replace(report, targets=(*report.targets, *other))
    text = render_audit_table(twice, PLAIN, explain=True)
    assert text.count("    why   The policy says") == 1
    assert "why" not in render_audit_table(twice, PLAIN)


def test_colour_only_where_it_is_asked_for() -> None:
    assert "\x1b[" not in render_audit_table(everything(), TERMINAL)
    assert "\x1b[1;31merror" in render_audit_table(everything(), Page(width=80, color=True))


def test_blocks_are_said_of_each_target_where_they_differ() -> None:
    text = render_audit_table(everything(), PLAIN)
    assert "checkpoints/large (blocks 3, 7-9), checkpoints/small (block 3)" in text
    assert "layers.*, block 1" in render_audit_table(typed(), PLAIN)
