"""Baselines: new, known and gone findings, and files that are none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.audit.baseline import (
    Baseline,
    apply_baseline,
    baseline_text,
    read_baseline,
    updated_entries,
)
from normscope.audit.findings import Observation, Severity, merged
from normscope.audit.report import AuditedTarget, Failure, GoneFinding
from normscope.errors import FailureKind, UsageError
from normscope.inspection import BlockReport, Placement
from normscope.versions import versions

TEXT = st.text(max_size=5)
ENTRIES = st.builds(
    GoneFinding, code=TEXT, target=TEXT, where=TEXT, found=TEXT, expected=TEXT
)  # fmt: skip


def entry(code: str = "NS101", target: str = "a", where: str = "layers.*", **more: str):
    known = {"found": "post-norm", "expected": "pre-norm", **more}
    return GoneFinding(code=code, target=target, where=where, **known)


def observed(index: int) -> Observation:
    block = BlockReport(
        path=f"layers.{index}",
        stack="layers",
        index=index,
        calls=1,
        placement=Placement.POST,
        branches=(),
    )
    return Observation(
        where=block.path, message="m", found="post-norm", expected="pre-norm", block=block
    )


def audited(target: str = "a", blocks=(0,), checked=("NS101",), family: str = "f"):
    found = merged("NS101", Severity.WARNING, target, family, [observed(n) for n in blocks])
    return AuditedTarget(target=target, family=family, findings=found, checked=checked)


def failed(target: str) -> AuditedTarget:
    why = Failure(kind=FailureKind.GATED, message="no")
    return AuditedTarget(target=target, family="f", checked=("NS101",), failure=why)


def known(*entries: GoneFinding) -> Baseline:
    return Baseline(file="known.json", entries=entries)


def written(folder: Path, entries) -> Baseline:
    path = folder / "known.json"
    path.write_text(baseline_text(entries), encoding="utf-8")
    return read_baseline(path)


@given(st.lists(ENTRIES, max_size=4), st.randoms())
def test_a_baseline_comes_back_and_its_bytes_are_those_of_its_findings(entries, random):
    text = baseline_text(entries)
    document = json.loads(text)
    assert {tuple(sorted(each.items())) for each in document["findings"]} == {
        tuple(sorted(vars_of(each).items())) for each in entries
    }
    shuffled = [*entries, *entries]
    random.shuffle(shuffled)
    assert baseline_text(shuffled) == text
    assert text.isascii()


def vars_of(each: GoneFinding) -> dict[str, str]:
    names = ("code", "target", "where", "found", "expected")
    return {name: getattr(each, name) for name in names}


def test_one_finding_a_line(tmp_path):
    text = baseline_text([entry(target="b"), entry(target="a", where="x"), entry(target="a")])
    assert text == (
        '{\n  "findings": [\n'
        '    {"code": "NS101", "expected": "pre-norm", "found": "post-norm", "target": "a", '
        '"where": "layers.*"},\n'
        '    {"code": "NS101", "expected": "pre-norm", "found": "post-norm", "target": "a", '
        '"where": "x"},\n'
        '    {"code": "NS101", "expected": "pre-norm", "found": "post-norm", "target": "b", '
        '"where": "layers.*"}\n'
        f'  ],\n  "normscope": "{versions()["normscope"]}",\n'
        '  "schema": "normscope.baseline/1"\n}\n'
    )
    assert written(tmp_path, []).entries == ()


def test_what_was_found_is_known_the_next_time(tmp_path):
    baseline = written(tmp_path, updated_entries([audited()]))
    (marked,), gone = apply_baseline([audited()], baseline)
    assert [each.known for each in marked.findings] == [True]
    assert gone == ()


@pytest.mark.parametrize("blocks", [(3,), (0, 1, 2), (7, 5)])
def test_layers_that_were_added_or_reordered_change_nothing(blocks):
    (marked,), gone = apply_baseline([audited(blocks=blocks)], known(entry()))
    assert [each.known for each in marked.findings] == [True]
    assert gone == ()


@pytest.mark.parametrize(
    "other",
    [
        entry(code="NS102"),
        entry(target="b"),
        entry(where="layers.0"),
        entry(found="no-norm"),
        entry(expected="none"),
    ],
)
def test_another_finding_is_new(other):
    (marked,), _ = apply_baseline([audited()], known(other))
    assert [each.known for each in marked.findings] == [False]


def test_other_words_of_a_finding_change_nothing():
    target = audited()
    (finding,) = target.findings
    told = replace(finding, message="otherwise", severity=Severity.ERROR, family="g")
    (marked,), _ = apply_baseline([replace(target, findings=(told,))], known(entry()))
    assert [each.known for each in marked.findings] == [True]


class TestGone:
    def test_what_is_no_more(self):
        _, gone = apply_baseline([audited(blocks=())], known(entry()))
        assert gone == (entry(),)

    @pytest.mark.parametrize(
        "targets",
        [
            [],
            [audited("b")],
            [failed("a")],
            [audited(blocks=(), checked=("NS102",))],
        ],
        ids=["not run", "another shard", "failed", "rule not checked"],
    )
    def test_what_was_not_looked_for_is_not_gone(self, targets):
        assert apply_baseline(targets, known(entry()))[1] == ()

    def test_what_one_of_two_families_still_finds_is_not_gone(self):
        both = [audited(blocks=(), family="g"), audited()]
        assert apply_baseline(both, known(entry()))[1] == ()


class TestUpdating:
    BEFORE = known(entry(), entry(target="failed"), entry(target="other"), entry(code="NS301"))

    def test_what_was_not_looked_for_stays(self):
        run = [audited(blocks=()), failed("failed")]
        assert set(updated_entries(run, self.BEFORE)) == {
            entry(target="failed"),
            entry(code="NS301"),
        }

    def test_a_run_of_some_targets_leaves_the_others(self):
        run = [audited()]
        assert set(updated_entries(run, self.BEFORE, whole=False)) == set(self.BEFORE.entries)


class TestFilesThatAreNone:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("no", "known.json:1: not a baseline"),
            ('{"schema": "normscope.lock/1"}', 'its schema is "normscope.lock/1"'),
            ('{"schema": "normscope.baseline/1", "findings": 3}', "'findings' is not a list"),
            ('{"schema": "normscope.baseline/1", "findings": [3]}', "an object is expected"),
            ('{"schema": "normscope.baseline/1", "findings": [{"code": 3}]}', "'code' is not a"),
        ],
    )
    def test_another_content(self, tmp_path, text, message):
        path = tmp_path / "known.json"
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            read_baseline(path)

    def test_of_a_newer_schema(self, tmp_path):
        path = tmp_path / "known.json"
        path.write_text('{"schema": "normscope.baseline/2", "normscope": "9.1.0"}')
        with pytest.raises(UsageError, match=r"normscope 9.1.0 wrote this baseline") as caught:
            read_baseline(path)
        assert f"{versions()['normscope']}, reads normscope.baseline/1" in caught.value.message
        assert "--update-baseline" in caught.value.hint
