"""Reports that are read again, one or several, whole or not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.audit_reports import VERSIONS, audited, clean, eps_finding, everything, failed, hostile
from normscope.audit.findings import Finding, Severity
from normscope.audit.join_runs import joined_report
from normscope.audit.policy import Place
from normscope.audit.report import (
    AuditedTarget,
    AuditReport,
    Failure,
    GoneFinding,
    StackFacts,
    TargetFacts,
    Unchecked,
)
from normscope.errors import FailureKind, UsageError
from normscope.render.audit_documents import (
    render_audit_json,
    render_audit_json_lines,
    render_audit_summary_line,
    render_audited_line,
)

Render = Callable[[AuditReport], str]
BOTH = pytest.mark.parametrize("render", [render_audit_json, render_audit_json_lines])

TEXT = st.text(st.characters(), max_size=4)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
STACKS = st.lists(
    st.builds(StackFacts, path=TEXT, blocks=st.integers(0, 9), placements=TEXTS, norms=TEXTS),
    max_size=2,
).map(tuple)
FACTS = st.builds(
    TargetFacts,
    class_name=TEXT,
    model_type=st.none() | TEXT,
    revision=st.none() | TEXT,
    config=st.none() | TEXT,
    dtype=TEXT,
    parameters=st.integers(0, 10**12),
    placement=TEXT,
    stacks=STACKS,
    outside=TEXTS,
    norm_calls=st.integers(0, 99),
)
FAILURES = st.builds(Failure, kind=st.sampled_from(FailureKind), message=TEXT, hint=TEXT)
PLACES = st.none() | st.builds(Place, file=TEXT, line=st.integers(1, 99))


@st.composite
def targets(draw: st.DrawFn, name: str) -> AuditedTarget:
    family = draw(TEXT)
    finding = st.builds(
        Finding,
        code=TEXT,
        severity=st.sampled_from(Severity),
        target=st.just(name),
        family=st.just(family),
        where=TEXT,
        places=TEXTS,
        message=TEXT,
        detail=TEXT,
        found=TEXT,
        expected=TEXT,
        known=st.booleans(),
    )
    failure = draw(st.none() | FAILURES)
    return AuditedTarget(
        target=name,
        family=family,
        place=draw(PLACES),
        facts=None if failure is not None else draw(st.none() | FACTS),
        findings=tuple(draw(st.lists(finding, max_size=2))),
        checked=draw(TEXTS),
        unchecked=tuple(draw(st.lists(st.builds(Unchecked, code=TEXT, reason=TEXT), max_size=2))),
        failure=failure,
    )


@st.composite
def reports(draw: st.DrawFn) -> AuditReport:
    names = draw(st.lists(TEXT, max_size=3, unique=True))
    return AuditReport(
        versions=VERSIONS,
        policy=draw(st.none() | TEXT),
        targets=tuple(draw(targets(name)) for name in names),
        baseline=draw(st.none() | TEXT),
    )


@given(report=reports())
@BOTH
def test_what_is_written_is_read_again(render: Render, report: AuditReport) -> None:
    joined = joined_report([("a.jsonl", render(report))])
    assert replace(joined.report, targets=()) == replace(report, targets=())
    assert set(joined.report.targets) == set(report.targets)
    assert joined.remarks == ()


@BOTH
@pytest.mark.parametrize("report", [everything(), clean()], ids=["everything", "clean"])
def test_a_whole_report_comes_back(render: Render, report: AuditReport) -> None:
    assert joined_report([("a", render(report))]).report == report


def test_hostile_text_comes_back() -> None:
    joined = joined_report([("a", render_audit_json_lines(hostile()))])
    assert joined.report.targets == hostile().targets


def shard(number: int, *shown: AuditedTarget, of: int = 2, interrupted: bool = False) -> str:
    report = replace(clean(), targets=shown, shard=f"{number}/{of}", interrupted=interrupted)
    return render_audit_json_lines(report)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_shards_are_joined_in_the_order_of_the_policy(order: tuple[int, int]) -> None:
    of_policy = everything().targets
    texts = [
        shard(1, *reversed(of_policy[::2])),
        shard(2, *of_policy[1::2]),
    ]
    joined = joined_report([(str(number), texts[number]) for number in order])
    assert joined.report.targets == of_policy
    assert joined.remarks == ()


def test_targets_that_were_typed_come_last_by_name() -> None:
    typed = [
        replace(target, place=None, target=name)
        for name, target in zip("ba", clean().targets, strict=True)
    ]
    report = replace(clean(), targets=(*typed, *clean().targets))
    joined = joined_report([("a", render_audit_json_lines(report))])
    assert [target.target for target in joined.report.targets] == [
        "type:bert",
        "type:roberta",
        "a",
        "b",
    ]


def test_reports_put_into_one_file_are_read_as_several() -> None:
    first, second = clean().targets
    joined = joined_report([("all", shard(1, first) + shard(2, second))])
    assert joined.report == clean()


def test_a_missing_shard_is_said_and_the_report_is_not_complete() -> None:
    joined = joined_report([("a", shard(1, of=3)), ("b", shard(3, of=3))])
    assert joined.report.interrupted
    assert joined.remarks == ("shard 2/3 is missing",)


def test_missing_shards_are_told_in_one_line() -> None:
    joined = joined_report([("a", render_audit_json(replace(clean(), shard="6/50")))])
    assert joined.remarks == ("shards 1-5, 7-50 of 50 are missing",)
    assert joined.report.interrupted


def test_an_empty_shard_is_one() -> None:
    joined = joined_report([("a", shard(1, *clean().targets)), ("b", shard(2))])
    assert joined.report == clean()


def test_of_two_answers_the_later_one_counts() -> None:
    broken = failed("type:bert", 4, FailureKind.OFFLINE, "no network", "")
    bert, roberta = clean().targets
    first = replace(clean(), targets=(replace(broken, family="encoders"), roberta))
    again = replace(clean(), targets=(bert,))
    joined = joined_report([("a", render_audit_json_lines(first)), ("b", render_audit_json(again))])
    assert joined.report == clean()
    assert joined.remarks == ("1 answers are replaced by later ones of the same targets",)


def test_one_target_in_two_families_is_two_answers() -> None:
    bert = clean().targets[0]
    report = replace(clean(), targets=(bert, replace(bert, family="other")))
    assert joined_report([("a", render_audit_json_lines(report))]).report == report


def test_a_cut_last_line_leaves_what_was_finished() -> None:
    text = render_audit_json_lines(clean())
    cut = text[: text.index("\n") + 30]
    joined = joined_report([("a.jsonl", cut)])
    assert joined.report.targets == clean().targets[:1]
    assert joined.report.interrupted
    assert joined.remarks == (
        "a.jsonl: its last line is cut off: the run was ended before every target was answered",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        (render_audited_line(clean().targets[0])[:60], "its last line is cut off"),
        (render_audited_line(failed("b", 1, FailureKind.CORRUPT, "", ""))[:30], "its last line"),
        (render_audit_summary_line(clean())[:40], "its last line is cut off"),
        ("{", "its last line is cut off"),
    ],
)
def test_a_file_without_a_whole_line_takes_nothing_from_the_others(text: str, said: str) -> None:
    joined = joined_report([("e.jsonl", text), ("a", render_audit_json_lines(clean()))])
    assert joined.report == replace(clean(), interrupted=True)
    assert joined.remarks[0].startswith(f"e.jsonl: {said}")


def test_a_missing_summary_is_said() -> None:
    text = "".join(map(render_audited_line, clean().targets))
    joined = joined_report([("a.jsonl", text)])
    assert joined.report.interrupted
    assert "it has no summary" in joined.remarks[0]


def test_a_run_that_was_interrupted_is_said() -> None:
    text = render_audit_json_lines(replace(clean(), interrupted=True))
    assert joined_report([("a", text)]).report.interrupted


def test_a_shard_that_was_run_again_counts_as_it_ended_last() -> None:
    first, second = clean().targets
    files = [
        ("a", shard(1, first)),
        ("b", shard(2, interrupted=True)),
        ("b2", shard(2, second)),
    ]
    assert joined_report(files).report == clean()
    assert joined_report([files[0], files[2], files[1]]).report.interrupted


def gone(target: str) -> GoneFinding:
    identity = eps_finding(target)
    return GoneFinding(
        code=identity.code,
        target=target,
        where=identity.where,
        found=identity.found,
        expected=identity.expected,
    )


def test_a_finding_is_gone_only_where_no_shard_has_it() -> None:
    found = audited("type:a", "f", 1, eps_finding("type:a"))
    broken = failed("type:b", 1, FailureKind.CORRUPT, "x", "")
    one = replace(clean(), targets=(found,), gone=(gone("type:b"), gone("type:c")))
    two = replace(clean(), targets=(broken,), gone=(gone("type:a"), gone("type:c")))
    files = [("a", render_audit_json_lines(one)), ("b", render_audit_json_lines(two))]
    assert joined_report(files).report.gone == (gone("type:c"),)


def test_runs_that_differ_are_told() -> None:
    other = replace(
        clean(), versions={**VERSIONS, "torch": "2.12.0"}, policy="other.toml", baseline="b.json"
    )
    files = [("a", render_audit_json_lines(clean())), ("b", render_audit_json_lines(other))]
    joined = joined_report(files)
    assert joined.report.policy is None
    assert joined.report.versions["torch"] == "2.12.0, 2.13.0"
    assert [remark for remark in joined.remarks if "different" in remark] == [
        "the runs had different versions of torch: 2.12.0, 2.13.0",
        "the runs had different policies: ci/normscope.toml, other.toml",
        "the runs had different baselines: b.json, none",
    ]


LINE = render_audited_line(clean().targets[0])
END = render_audit_summary_line(clean())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "a.jsonl, line 1: not a line of an audit's report"),
        ('{"chequed": [', "a.jsonl, line 1: not a line of an audit's report"),
        (f"{LINE}nonsense\n{END}", "a.jsonl, line 2: not a line of an audit's report"),
        (f"{LINE}[1]\n", "a.jsonl, line 2: not a line of an audit's report"),
        ('{"schema": "normscope.inspection/1"}', "a.jsonl, line 1: not a line of an"),
        ("[" * 100_000, "a.jsonl, line 1: not a line of an audit's report"),
        (
            LINE.replace("audited/1", "audited/2"),
            "its schema is normscope.audited/2, and this normscope reads normscope.audited/1",
        ),
        (
            render_audit_json(clean()).replace("normscope.audit/1", "normscope.audit/7"),
            "its schema is normscope.audit/7, and this normscope reads normscope.audit/1",
        ),
        (
            render_audit_json(clean()).replace("normscope.audited/1", "x/1"),
            "not a line of an audit's report",
        ),
        (LINE.replace('"family": "encoders"', '"family": 3'), "line 1: 'family' is not a text"),
        (LINE.replace('"family"', '"familie"'), "line 1: there is no 'family'"),
        (LINE.replace('"line": 4', '"line": true'), "'line' is not a whole number"),
        (LINE.replace('["NS101"', '[1, "NS101"'), "'checked' is not a list of texts"),
        (END.replace('"interrupted": false', '"interrupted": 0'), "is not true or false"),
        (END.replace('"gone": []', '"gone": {}', 1), "'gone' is not a list"),
        (END.replace('"gone": []', '"gone": [1]', 1), "an object is expected"),
        (
            '{"schema": "normscope.failure/1", "target": "a", "family": "", "place": null, '
            '"kind": "new_kind", "message": "", "hint": ""}',
            "'kind' is 'new_kind', which is not known here",
        ),
    ],
)
def test_what_is_no_report_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        joined_report([("a.jsonl", text)])
    assert message in error.value.message


def test_what_newer_versions_add_is_passed_over() -> None:
    line = LINE.replace('"family"', '"added": [1], "family"')
    assert joined_report([("a", line + END)]).report.targets == clean().targets[:1]
