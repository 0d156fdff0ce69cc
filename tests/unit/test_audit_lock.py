"""Lock files: what they look like, what drift they see, and files that are none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from golden.facts import FACTS, STACK, with_stack
from normscope.audit.findings import Severity
from normscope.audit.lock import (
    against_lock,
    lock_text,
    read_lock,
    unnamed_targets,
    updated_facts,
)
from normscope.audit.policy import Assignment, Place
from normscope.audit.report import AuditedTarget, Failure, TargetFacts, Unchecked
from normscope.errors import FailureKind, UsageError

BOTH = ("NS501", "NS502")


def written(folder: Path, facts: dict[str, TargetFacts]):
    path = folder / "normscope.lock"
    path.write_text(lock_text(facts), encoding="utf-8")
    return read_lock(path)


def test_a_lock_file_comes_back(tmp_path):
    facts = {"b": FACTS, "./ä/…": with_stack(norms=()), "a": replace(FACTS, revision="v1")}
    lock = written(tmp_path, facts)
    assert lock.targets == facts
    lines = (tmp_path / "normscope.lock").read_text().split("\n")
    assert all(json.dumps(name) in lines[lock.lines[name] - 1] for name in facts)


def test_its_bytes_are_those_of_the_facts():
    other = replace(FACTS, parameters=2)
    assert lock_text({"a": FACTS, "b": other}) == lock_text({"b": other, "a": FACTS})
    text = lock_text({"a": FACTS})
    assert text.isascii()
    assert text.endswith("}\n")
    assert '\n      "placement": "pre-norm",\n' in text
    assert '\n            "*.input_layernorm: RMSNorm eps 1e-06 gain w",\n' in text


def test_one_changed_fact_is_one_changed_line():
    now = with_stack(norms=(STACK.norms[0].replace("1e-06", "1e-05"), STACK.norms[1]))
    before, after = lock_text({"a": FACTS}).split("\n"), lock_text({"a": now}).split("\n")
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def audited(target: str = "a", **more: object) -> AuditedTarget:
    return AuditedTarget(target=target, family="f", **{"facts": FACTS, **more})  # type: ignore[arg-type]


class TestAgainstLock:
    def test_what_is_as_it_was(self, tmp_path):
        found = against_lock(audited(checked=("NS101",)), written(tmp_path, {"a": FACTS}), BOTH)
        assert (found.findings, found.checked) == ((), ("NS101", *BOTH))

    def test_what_changed(self, tmp_path):
        lock = written(tmp_path, {"a": replace(FACTS, dtype="float16")})
        (found,) = against_lock(audited(), lock, BOTH).findings
        assert (found.code, found.severity) == ("NS501", Severity.ERROR)
        assert (found.target, found.family) == ("a", "f")

    def test_what_is_not_locked(self, tmp_path):
        (found,) = against_lock(audited("b"), written(tmp_path, {"a": FACTS}), BOTH).findings
        assert found.code == "NS502"

    def test_rules_that_are_not_selected_say_nothing(self, tmp_path):
        lock = written(tmp_path, {"a": replace(FACTS, dtype="float16")})
        found = against_lock(audited(), lock, ("NS502",))
        assert (found.findings, found.checked) == ((), ("NS502",))
        assert against_lock(audited("b"), lock, ("NS501",)).findings == ()

    def test_what_failed_is_left_alone(self, tmp_path):
        failed = audited(facts=None, failure=Failure(kind=FailureKind.GATED, message="no"))
        assert against_lock(failed, written(tmp_path, {}), BOTH) is failed

    def test_what_waited_for_a_lock_file_is_checked(self, tmp_path):
        waiting = audited(unchecked=(Unchecked(code="NS501", reason="there is no lock file"),))
        assert against_lock(waiting, written(tmp_path, {"a": FACTS}), BOTH).unchecked == ()


def test_targets_that_the_policy_no_longer_names(tmp_path):
    lock = written(tmp_path, {"a": FACTS, "b": FACTS})
    (found,) = unnamed_targets(lock, [Assignment(target="a", opened="a")])
    file = (tmp_path / "normscope.lock").as_posix()
    assert found.target == "b"
    assert found.place == Place(file=file, line=lock.lines["b"])
    assert [each.code for each in found.findings] == ["NS502"]


class TestUpdating:
    def test_a_target_that_failed_keeps_what_was_locked(self, tmp_path):
        lock = written(tmp_path, {"a": FACTS, "gone": FACTS})
        failed = audited(facts=None, failure=Failure(kind=FailureKind.GATED, message="no"))
        new = audited("new")
        assert set(updated_facts([failed, new], lock)) == {"a", "new"}
        assert set(updated_facts([failed, new], lock, whole=False)) == {"a", "new", "gone"}

    def test_without_a_lock_file(self):
        assert updated_facts([audited()]) == {"a": FACTS}


class TestFilesThatAreNone:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", r"normscope.lock:1: not a lock file: Expecting value"),
            ("[]", "it has no schema of normscope's"),
            ('{"schema": 1}', "it has no schema of normscope's"),
            ('{"schema": "normscope.baseline/1"}', 'its schema is "normscope.baseline/1"'),
            ('{"schema": "other"}', 'its schema is "other"'),
            ('{"schema": "normscope.lock/1"}', "`targets`: an object is expected"),
            ('{"schema": "normscope.lock/1", "targets": {"a": {}}}', '"a": there is no'),
            ('{"schema": "normscope.lock/1", "targets": {"a": 1, "a": 1}}', '"a" stands twice'),
            ("[" * 100_000, "not a lock file"),
            ("{\n<<<<<<< ours\n}", "normscope.lock:2: the lock file has a merge conflict"),
        ],
    )
    def test_another_content(self, tmp_path, text, message):
        path = tmp_path / "normscope.lock"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=message):
            read_lock(path)

    def test_of_a_newer_schema(self, tmp_path):
        path = tmp_path / "normscope.lock"
        path.write_text('{"schema": "normscope.lock/2", "targets": {}}')
        with pytest.raises(UsageError, match=r"a newer normscope wrote this lock file") as caught:
            read_lock(path)
        assert "normscope.lock/2" in caught.value.message
        assert "--update-lock" in caught.value.hint

    def test_no_file(self, tmp_path):
        with pytest.raises(UsageError, match="there is no such lock file") as caught:
            read_lock(tmp_path / "none.lock")
        assert caught.value.hint == "--update-lock writes it"

    def test_no_text(self, tmp_path):
        path = tmp_path / "normscope.lock"
        path.write_bytes(b"\xff\xfe")
        with pytest.raises(UsageError, match="not a lock file"):
            read_lock(path)
        with pytest.raises(UsageError, match="cannot be read"):
            read_lock(tmp_path)
