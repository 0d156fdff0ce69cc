"""What was typed for `audit` -> which targets, rules and records; mistakes come before the work."""

from pathlib import Path

import pytest

from normscope.audit.findings import Finding, Severity
from normscope.audit.measurable import why_unmeasured
from normscope.audit.policy import Assignment, Measuring
from normscope.audit.report import AuditedTarget, Unchecked
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.cli.audit_kept import Kept
from normscope.cli.audit_plan import (
    Plan,
    RecordFiles,
    Selection,
    plan_audit,
    read_codes,
    read_shard,
)
from normscope.errors import UsageError

POLICY = """
select = ["NS1"]
ignore = ["NS107"]
[[family]]
name = "a"
targets = ["type:bert", "type:gpt2", "type:t5"]
select = ["NS2"]
ignore = ["NS203"]
[[family.override]]
targets = ["type:t5"]
select = ["NS3"]
[[family]]
name = "b"
targets = ["type:llama"]
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("normscope.toml").write_text(POLICY)


def planned(
    *targets: str,
    policy: Path | None = None,
    selection: Selection | None = None,
    files: RecordFiles | None = None,
    part: str | None = None,
) -> Plan:
    return plan_audit(targets, policy, selection or Selection(), files or RecordFiles(), part)


def rules(plan: Plan) -> dict[str, set[str]]:
    return {each.target: {code[:3] for code in each.rules} for each in plan.assignments}


class TestRules:
    def test_the_policys(self) -> None:
        found = rules(planned())
        assert found == {
            "type:bert": {"NS2"},
            "type:gpt2": {"NS2"},
            "type:t5": {"NS3"},
            "type:llama": {"NS1"},
        }

    def test_what_is_typed_comes_first_and_ignoring_adds_up(self) -> None:
        plan = planned(selection=Selection(select=("NS1", "NS203"), ignore=("NS101",)))
        codes = {each.target: each.rules for each in plan.assignments}
        assert all("NS102" in each and "NS101" not in each for each in codes.values())
        assert not any("NS107" in each for each in codes.values())
        assert "NS203" in codes["type:llama"]
        assert "NS203" not in codes["type:bert"]

    @pytest.mark.parametrize("option", ["select", "ignore"])
    def test_a_code_that_there_is_not(self, option: str) -> None:
        with pytest.raises(UsageError, match="NS999"):
            planned(selection=Selection(**{option: ("NS999",)}))

    def test_codes(self) -> None:
        assert read_codes(["NS1,NS203", "NS4 NS5,"]) == ("NS1", "NS203", "NS4", "NS5")
        assert read_codes(None) == ()


class TestShards:
    @pytest.mark.parametrize("text", ["", "2", "0x1/2", "a/b", "1/2/3", "-1/2", "1/ 2", "\u0661/2"])
    def test_what_is_no_part(self, text: str) -> None:
        with pytest.raises(UsageError):
            read_shard(text)

    def test_parts_are_the_whole(self) -> None:
        parts = [planned(part=f"{part}/3") for part in (1, 2, 3)]
        targets = [each.target for part in parts for each in part.assignments]
        assert sorted(targets) == sorted(each.target for each in planned().assignments)
        assert [part.shard for part in parts] == ["1/3", "2/3", "3/3"]
        assert [part.tells_unnamed for part in parts] == [True, False, False]
        assert not any(part.whole for part in parts)
        assert planned(part="1/1").whole


class TestTargets:
    def test_typed_ones_are_not_the_whole_policy(self) -> None:
        plan = planned("type:bert")
        assert (plan.whole, plan.tells_unnamed) == (False, False)
        assert [each.family for each in plan.assignments] == ["a"]

    def test_a_policy_that_is_named(self) -> None:
        Path("other.toml").write_text('[[family]]\nname = "o"\ntargets = ["type:vit"]\n')
        plan = planned(policy=Path("other.toml"))
        assert [each.target for each in plan.assignments] == ["type:vit"]

    def test_nothing_to_do(self) -> None:
        Path("normscope.toml").unlink()
        with pytest.raises(UsageError, match="nothing to audit"):
            planned()


class TestRecords:
    @pytest.mark.parametrize(
        "files",
        [
            RecordFiles(update_lock=True),
            RecordFiles(update_baseline=True),
            RecordFiles(lock=Path("no/such/file"), update_lock=True),
            RecordFiles(baseline=Path(), update_baseline=True),
            RecordFiles(lock=Path("none")),
            RecordFiles(baseline=Path("none")),
        ],
    )
    def test_files_that_cannot_be(self, files: RecordFiles) -> None:
        with pytest.raises(UsageError):
            planned(files=files)

    def test_what_is_written_anew_is_not_held_against(self) -> None:
        Path("known.json").write_text('{"schema": "normscope.baseline/1", "findings": []}')
        files = RecordFiles(baseline=Path("known.json"), update_baseline=True)
        plan = planned(files=files)
        assert plan.records.baseline is None
        assert plan.records.accepted
        assert plan.before.baseline is not None


class TestKept:
    def test_answers_are_in_order_and_share_what_is_alike(self) -> None:
        kept = Kept(facts=False)
        for number in (2, 0, 1):
            reason = "".join(["no ", "weights"])
            unchecked = (Unchecked(code="NS301", reason=reason),)
            kept.take(
                number,
                AuditedTarget(
                    target=f"t{number}",
                    family="f",
                    checked=(f"NS{number + 101 - number}",),
                    unchecked=unchecked,
                    findings=(
                        Finding(
                            code="NS101",
                            severity=Severity.ERROR,
                            target=f"t{number}",
                            family="f",
                            where="",
                            places=("",),
                            message="m",
                        ),
                    ),
                ),
            )
        answers = kept.in_order()
        assert [answer.target for answer in answers] == ["t0", "t1", "t2"]
        assert answers[0].unchecked is answers[2].unchecked
        assert answers[0].checked is answers[1].checked
        assert [answer.findings[0].target for answer in answers] == ["t0", "t1", "t2"]


class TestMeasurable:
    MEASURING = Measuring(input=("a text",))
    ASSIGNED = Assignment(target="a", opened="a", rules=("NS401",))

    def reason(self, **changes: object) -> str | None:
        given = {"target": "a", "kind": CheckpointKind.DIRECTORY, "directory": Path(), **changes}
        return why_unmeasured(self.ASSIGNED, Checkpoint(**given), self.MEASURING)

    def test_weights_that_lie_here(self) -> None:
        assert self.reason() == "there are no weights"
        Path("model.safetensors").touch()
        assert self.reason() is None
        assert self.reason(kind=CheckpointKind.CONFIG_FILE) == "there are no weights"

    def test_weights_that_do_not(self) -> None:
        hub = {"kind": CheckpointKind.HUB, "repository": "org/name"}
        assert self.reason(**hub) == "the weights do not lie here"
        assert "tokenizer" in (self.reason(kind=CheckpointKind.PYTHON) or "")

    def test_nobody_asks(self) -> None:
        checkpoint = Checkpoint(target="a", kind=CheckpointKind.GGUF)
        other = Assignment(target="a", opened="a", rules=("NS101",))
        assert why_unmeasured(self.ASSIGNED, checkpoint, self.MEASURING) is None
        assert why_unmeasured(other, checkpoint, self.MEASURING) == "no rule asks for it"
        assert "[stats]" in (why_unmeasured(self.ASSIGNED, checkpoint, None) or "")
