"""`normscope audit`: targets, rules, records and reports, from the shell's side."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from specimens.audits import findings, lines, run, write_policy, write_target
from specimens.tiny import tiny_policy

FORMATS = ["table", "json", "jsonl", "markdown", "github", "sarif", "junit"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def run_alone(*arguments: str, body: str = "") -> "subprocess.CompletedProcess[str]":
    """Run it in a process of its own, whose workers have the environment of this test."""
    program = f"from normscope.cli.app import main\n{body}\nmain()"
    return subprocess.run(
        [sys.executable, "-P", "-c", program, "audit", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


WORKLESS = """
from normscope.cli import workers
workers.Workers.give = None
"""


class TestStatus:
    @pytest.mark.parametrize("written", FORMATS)
    def test_it_is_the_same_in_every_format(self, written: str) -> None:
        write_target("a")
        write_policy()
        assert run("-f", written).exit_code == 0
        write_policy("post-norm")
        assert run("-f", written).exit_code == 1
        write_target("b", model_type="no-such-type")
        assert run("-f", written).exit_code == 3

    def test_fail_on_draws_the_line(self) -> None:
        write_target("a", rms_norm_eps=1e-12)
        Path("normscope.toml").write_text('[[family]]\nname = "a"\ntargets = ["checkpoints/*"]\n')
        severities = {line.get("severity") for line in lines(run("-f", "jsonl"))[0]["findings"]}
        assert severities == {"note"}
        assert run("--fail-on", "warning").exit_code == 0
        assert run("--fail-on", "note").exit_code == 1

    @pytest.mark.parametrize("written", ["jsonl", "json"])
    def test_a_failure_says_why(self, written: str) -> None:
        write_policy()
        write_target("a")
        (Path(write_target("broken")) / "config.json").write_text("{")
        result = run("-f", written)
        assert "checkpoints/broken" in result.stdout
        assert "error: checkpoints/broken: config.json is not valid JSON" in result.stderr


class TestTargets:
    def test_typed_ones_are_shown_as_typed_and_get_the_usual_rules(self) -> None:
        target = write_target("a", rms_norm_eps=1e-12)
        document = lines(run(f"./{target}", "-f", "jsonl"))[0]
        assert (document["target"], document["family"]) == (f"./{target}", "")
        assert {finding["code"] for finding in document["findings"]} == {"NS202"}

    def test_they_come_from_standard_input(self) -> None:
        targets = [write_target("a"), write_target("b")]
        found = lines(run("-", "-f", "jsonl", stdin="\n".join(targets)))
        assert [line.get("target") for line in found] == [*targets, None]

    def test_every_target_of_the_policy_is_there_in_its_order(self) -> None:
        for name in ("b", "a", "c"):
            write_target(name)
        write_policy()
        document = json.loads(run("-f", "json").stdout)
        assert [target["target"] for target in document["targets"]] == [
            "checkpoints/a",
            "checkpoints/b",
            "checkpoints/c",
        ]
        assert document["policy"] == "normscope.toml"

    def test_one_that_means_nothing_stops_no_other(self) -> None:
        found = lines(run(write_target("a"), "py:nothing", "-f", "jsonl"))
        assert {line.get("kind") for line in found} == {None, "not_found"}

    def test_a_policy_in_pyproject(self) -> None:
        write_target("a")
        text = tiny_policy("post-norm").replace("[family", "[tool.normscope.family")
        Path("pyproject.toml").write_text(text)
        assert run().exit_code == 1


class TestRules:
    def test_typed_rules_come_before_those_of_the_policy(self) -> None:
        write_target("a", rms_norm_eps=1e-12)
        write_policy("post-norm", 'select = ["NS106"]\n')
        assert {code for _, code, _ in findings(run("-f", "jsonl"))} == {"NS106"}
        assert {code for _, code, _ in findings(run("-f", "jsonl", "--select", "NS2"))} == {"NS202"}
        both = findings(run("-f", "jsonl", "--select", "NS106,NS202", "--ignore", "NS106"))
        assert {code for _, code, _ in both} == {"NS202"}

    def test_without_a_policy(self) -> None:
        target = write_target("a", rms_norm_eps=1e-12)
        assert findings(run(target, "-f", "jsonl", "--ignore", "NS202")) == []
        checked = lines(run(target, "-f", "jsonl", "--select", "NS202"))[0]["checked"]
        assert checked == ["NS202"]

    def test_a_lock_file_that_no_selected_rule_reads_is_told(self) -> None:
        target = write_target("a")
        run(target, "--lock", "x.lock", "--update-lock")
        ended = run(target, "--lock", "x.lock", "--select", "NS1")
        assert ended.stderr.startswith(
            "warning: --lock x.lock is not looked at: NS501 and NS502 are not selected; select NS5"
        )
        for looked_at in ((), ("--select", "NS1,NS5"), ("--select", "NS502"), ("--shard", "2/2")):
            told = run(target, "--lock", "x.lock", *looked_at).stderr
            assert "not looked at" not in told

    @pytest.mark.parametrize(
        ("typed", "why"),
        [
            (("--ignore", "NS"), "none is selected"),
            (("--select", "ns401"), "the policy has no [stats] input"),
        ],
    )
    def test_an_audit_that_checks_nothing_says_so(self, typed: tuple[str, str], why: str) -> None:
        ended = run(write_target("a"), *typed)
        assert ended.stderr == f"warning: no rule could be checked in any target: {why}\n"
        assert ended.exit_code == 0


class TestLock:
    def test_what_changes_is_found(self) -> None:
        write_target("a")
        write_policy()
        assert run("--lock", "normscope.lock", "--update-lock").exit_code == 0
        assert run("--lock", "normscope.lock").exit_code == 0
        write_target("a", num_hidden_layers=3)
        result = run("--lock", "normscope.lock", "-f", "jsonl")
        assert ("checkpoints/a", "NS501", False) in findings(result)
        assert result.exit_code == 1
        assert run("--lock", "normscope.lock", "--update-lock").exit_code == 0
        assert run("--lock", "normscope.lock").exit_code == 0

    def test_what_is_new_and_what_is_no_more(self) -> None:
        write_target("a")
        write_policy()
        run("--lock", "normscope.lock", "--update-lock")
        Path("checkpoints/a").rename("checkpoints/b")
        found = findings(run("--lock", "normscope.lock", "-f", "jsonl"))
        assert {(target, code) for target, code, _ in found} == {
            ("checkpoints/a", "NS502"),
            ("checkpoints/b", "NS502"),
        }
        assert findings(run("checkpoints/b", "--lock", "normscope.lock", "-f", "jsonl")) == [
            ("checkpoints/b", "NS502", False)
        ]

    def test_a_typed_target_leaves_the_others_locked(self) -> None:
        write_policy()
        for name in ("a", "b"):
            write_target(name)
        run("--lock", "normscope.lock", "--update-lock")
        before = Path("normscope.lock").read_text()
        run("checkpoints/b", "--lock", "normscope.lock", "--update-lock")
        assert Path("normscope.lock").read_text() == before

    def test_one_that_is_wrong_is_written_over_only_by_a_whole_run(self) -> None:
        write_target("a")
        write_policy()
        Path("normscope.lock").write_text("{")
        assert run("--lock", "normscope.lock").exit_code == 2
        typed = ["checkpoints/a", "--lock", "normscope.lock", "--update-lock"]
        assert run(*typed).exit_code == 2
        assert run(*typed[1:]).exit_code == 0
        assert run("--lock", "normscope.lock").exit_code == 0


class TestBaseline:
    def test_what_is_known_gives_no_status(self) -> None:
        write_target("a")
        write_policy("post-norm")
        accepted = run("--baseline", "known.json", "--update-baseline", "-f", "jsonl")
        assert accepted.exit_code == 0
        assert {known for _, _, known in findings(accepted)} == {True}
        assert run("--baseline", "known.json").exit_code == 0
        write_target("b")
        new = run("--baseline", "known.json", "-f", "jsonl")
        assert {(target, known) for target, _, known in findings(new)} == {
            ("checkpoints/a", True),
            ("checkpoints/b", False),
        }
        assert new.exit_code == 1

    def test_what_is_gone_is_told(self) -> None:
        write_target("a")
        write_policy("post-norm")
        run("--baseline", "known.json", "--update-baseline")
        write_policy()
        result = run("--baseline", "known.json", "-f", "json")
        assert result.exit_code == 0
        assert {gone["code"] for gone in json.loads(result.stdout)["gone"]} == {"NS106"}


class TestReports:
    def test_several_formats_in_one_run(self) -> None:
        write_target("a")
        write_policy("post-norm")
        result = run(
            "-f", "table", "-f", "sarif:r.sarif", "-f", "junit:r.xml", "-f", "jsonl:r.jsonl"
        )
        assert "NS106" in result.stdout
        assert json.loads(Path("r.sarif").read_text())["version"] == "2.1.0"
        assert ElementTree.parse("r.xml").getroot().tag == "testsuites"
        report = run("r.jsonl", "-f", "table", command="report")
        assert report.stdout == result.stdout

    def test_the_job_summary(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write_target("a")
        write_policy("post-norm")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
        assert "::error" in run("-f", "github").stdout
        assert "NS106" in Path("summary.md").read_text()

    def test_shards_joined_are_one_run(self) -> None:
        for layers in range(1, 6):
            write_target(str(layers), num_hidden_layers=layers)
        (Path(write_target("broken")) / "config.json").write_text("{")
        write_policy("post-norm")
        whole = run("-f", "json")
        parts = [f"{part}.jsonl" for part in (1, 2, 3)]
        seen = []
        for number, part in enumerate(parts, start=1):
            run("--shard", f"{number}/3", "-f", f"jsonl:{part}")
            seen.append(len(Path(part).read_text().splitlines()) - 1)
        assert seen == [2, 2, 2]
        joined = json.loads(run(*parts, "-f", "json", command="report").stdout)
        single = json.loads(whole.stdout)
        assert {**joined, "targets": by_name(joined)} == {**single, "targets": by_name(single)}

    @pytest.mark.parametrize("written", FORMATS)
    def test_a_shard_without_a_target_says_so(self, written: str) -> None:
        target = write_target("a")
        whole = run(target, "-f", "json")
        ended = [run(target, "--shard", f"{n}/2", "-f", written) for n in (1, 2)]
        assert [each.exit_code for each in ended] == [0, 0]
        empty = "shard {} has no target: the whole audit has 1 target\n"
        assert sorted(each.stderr for each in ended) in (
            ["", empty.format("1/2")],
            ["", empty.format("2/2")],
        )
        quiet = [run(target, "--shard", f"{n}/2", "-f", written, "-q").stderr for n in (1, 2)]
        assert quiet == ["", ""]
        if written in ("json", "jsonl"):
            for number, each in enumerate(ended, start=1):
                Path(f"{number}.part").write_text(each.stdout)
            joined = run("1.part", "2.part", "-f", "json", command="report")
            assert (joined.stdout, joined.stderr) == (whole.stdout, "")

    def test_a_shard_tells_once_what_only_the_lock_has(self) -> None:
        for name in ("a", "b"):
            write_target(name)
        write_policy()
        run("--lock", "normscope.lock", "--update-lock")
        Path("checkpoints/a").rename("aside")
        told = [
            findings(run("--lock", "normscope.lock", "-f", "jsonl", "--shard", f"{part}/2"))
            for part in (1, 2)
        ]
        assert told == [[("checkpoints/a", "NS502", False)], []]

    def test_quiet_leaves_stderr_empty(self) -> None:
        write_target("a")
        write_policy()
        arguments = ("-q", "-f", "json:r.json", "--lock", "l.lock", "--update-lock")
        assert run(*arguments).stderr == ""
        assert run(*arguments[1:]).stderr == "1 target: 0 findings, 0 failed\nwrote l.lock\n"

    def test_a_report_in_files_alone_counts_what_is_known(self) -> None:
        write_target("a")
        write_policy("post-norm")
        told = run("-f", "json:r.json", "--baseline", "k.json", "--update-baseline").stderr
        known = len(json.loads(Path("k.json").read_text())["findings"])
        assert told == f"1 target: 0 findings, {known} known, 0 failed\nwrote k.json\n"

    @pytest.mark.parametrize(
        ("typed", "taken"),
        [
            (("-f", "json:normscope.toml"), "normscope.toml"),
            (("-o", "normscope.lock", "--lock", "normscope.lock"), "normscope.lock"),
            (("-f", "sarif:known.json", "--baseline", "known.json"), "known.json"),
            (("-o", "new.json", "--baseline", "new.json", "--update-baseline"), "new.json"),
            (("--lock", "x", "--update-lock", "--baseline", "x", "--update-baseline"), "x"),
            (("-o", "normscope.toml", "--policy", "./normscope.toml"), "normscope.toml"),
            (("checkpoints/a/config.json", "-o", "checkpoints/a/config.json"), "config.json"),
        ],
    )
    def test_no_file_is_written_over_one_that_is_read_or_written(
        self, typed: tuple[str, ...], taken: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_target("a")
        write_policy()
        run("--lock", "normscope.lock", "--update-lock")
        run("--baseline", "known.json", "--update-baseline")
        before = {path: path.read_bytes() for path in Path().rglob("*.*") if path.is_file()}
        monkeypatch.setattr("normscope.auditing.audit_target", lambda *_: pytest.fail("was done"))
        result = run(*typed)
        assert result.exit_code == 2
        assert taken in result.stderr
        assert "would be written over" in result.stderr
        after = {path: path.read_bytes() for path in Path().rglob("*.*") if path.is_file()}
        assert after == before

    def test_a_full_disk_is_told(self) -> None:
        result = run(write_target("a"), "-f", "json:/dev/full")
        assert result.exit_code == 2
        assert "No space left" in result.stderr

    @pytest.mark.parametrize("option", ["-o", "--lock", "--baseline"])
    def test_a_place_that_cannot_be_written_is_told_before_the_work(
        self, option: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_target("a")
        monkeypatch.setattr("normscope.auditing.audit_target", lambda *_: pytest.fail("was done"))
        update = [] if option == "-o" else [option.replace("--", "--update-")]
        result = run("checkpoints/a", option, "no/such/folder.json", *update)
        assert result.exit_code == 2
        assert "no/such" in result.stderr


def by_name(document: dict[str, list[dict[str, object]]]) -> list[dict[str, object]]:
    return sorted(document["targets"], key=lambda target: str(target["target"]))


class TestWeights:
    def test_values_are_read_where_they_lie_here(self) -> None:
        document = lines(run("demo:pre-norm", "-f", "jsonl"))[0]
        assert {"NS301", "NS303", "NS304"} <= set(document["checked"])
        less = lines(run("demo:pre-norm", "-f", "jsonl", "--weights", "headers"))[0]
        assert "NS304" not in less["checked"]
        assert "NS301" in less["checked"]
        none = lines(run("demo:pre-norm", "-f", "jsonl", "--weights", "none"))[0]
        assert "NS301" not in none["checked"]

    def test_measured_where_the_policy_has_an_input(self) -> None:
        text = '[[family]]\nname = "d"\ntargets = ["demo:pre-norm", "type:llama"]\n'
        Path("normscope.toml").write_text(f'{text}[stats]\ninput = "The cat sat."\nverify = true\n')
        found = {line.get("target"): line for line in lines(run("-f", "jsonl"))}
        assert {"NS401", "NS405"} <= set(found["demo:pre-norm"]["checked"])
        reasons = {one["code"]: one["reason"] for one in found["type:llama"]["unchecked"]}
        assert reasons["NS401"] == "there are no weights"


class TestCache:
    def test_equal_configs_are_inspected_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in "abcde":
            write_target(name)
        write_policy("post-norm")
        given: list[str] = []

        def counted(self: object, number: int, task: object) -> None:
            given.append(task.target)
            give(self, number, task)

        from normscope.cli.workers import Workers

        give = Workers.give
        monkeypatch.setattr(Workers, "give", counted)
        result = run("-f", "jsonl", "--no-cache", "--jobs", "2")
        assert len({target for target, _, _ in findings(result)}) == 5
        assert given == ["checkpoints/a"]
        assert not (Path(os.environ["XDG_CACHE_HOME"]) / "normscope").exists()

    def test_the_second_run_needs_no_worker(self) -> None:
        write_target("a")
        write_target("b", hidden_size="wide")
        write_policy()
        first = run_alone("-f", "json")
        assert (first.returncode, json.loads(first.stdout)["summary"]["failed"]) == (3, 1)
        second = run_alone("-f", "json", body=WORKLESS)
        assert (second.returncode, second.stdout) == (3, first.stdout)
        write_policy("post-norm")
        anew = run_alone("checkpoints/a", body=WORKLESS)
        assert (anew.returncode, "NS106" in anew.stdout) == (1, True)

    def test_the_line_of_the_policy_is_todays(self) -> None:
        write_target("a")
        write_policy("post-norm")
        before = lines(run("-f", "jsonl"))[0]["place"]
        policy = Path("normscope.toml")
        policy.write_text("\n\n" + policy.read_text())
        after = lines(run("-f", "jsonl"))[0]["place"]
        assert after == {**before, "line": before["line"] + 2}
