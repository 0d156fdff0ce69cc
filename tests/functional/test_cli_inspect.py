"""`normscope inspect` from the arguments to the streams and the exit status, on made answers."""

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from golden.inspections import EVERY, bert, llama
from normscope.cli.app import app
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import Answer, Uninspectable
from normscope.render.documents import render_json, render_json_line
from normscope.render.overview import render_overview
from normscope.render.page import PLAIN, Page
from normscope.render.table import render_table

Ask = Callable[[str, object], Answer]


def made_answer(target: str, _request: object) -> Answer:
    if target == "./broken":
        raise NormscopeError(FailureKind.CORRUPT, "config.json is no JSON", "write it anew")
    if target == "./absent":
        return Uninspectable(target=target, kind=FailureKind.NOT_FOUND, message="no such path")
    return EVERY[target.partition(":")[2]]


@pytest.fixture(autouse=True)
def _made_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normscope.cli.inspect_request.ask", made_answer)


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["inspect", *arguments], input=stdin)


def answering(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.setattr("normscope.cli.inspect_request.ask", ask)


class TestFormats:
    def test_the_default_is_the_table(self) -> None:
        result = run("type:llama")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == render_table(llama(), PLAIN)

    def test_json_of_one_target_is_one_document(self) -> None:
        assert run("type:bert", "-f", "json").stdout == render_json(bert())

    def test_json_of_several_targets_is_one_line_each(self) -> None:
        result = run("type:bert", "type:llama", "-f", "json")
        assert result.stdout == render_json_line(bert()) + render_json_line(llama())

    def test_jsonl_is_one_line_each(self) -> None:
        assert run("type:bert", "-f", "jsonl").stdout == render_json_line(bert())

    def test_markdown_has_the_verdict(self) -> None:
        assert "**post-norm** `N(x + f(x))`" in run("type:bert", "-f", "markdown").stdout

    def test_several_targets_are_compared(self) -> None:
        result = run("type:bert", "type:llama")
        assert result.stdout == render_overview([bert(), llama()], PLAIN)

    def test_each_of_several_is_drawn(self) -> None:
        result = run("type:bert", "type:llama", "--diagram")
        assert result.stdout.count("└─ attention ──┘") == 1
        assert result.stdout.count("└─ RMSNorm ─ attention ──┘") == 1

    def test_verbose_shows_each_of_several_targets(self) -> None:
        result = run("type:bert", "type:llama", "--verbose")
        assert render_table(llama(), PLAIN, verbose=True) in result.stdout

    @pytest.mark.parametrize("written", ["table", "markdown"])
    @pytest.mark.parametrize(
        ("option", "shown"),
        [
            (["--blocks"], "encoder.layer.11"),
            (["--norms"], "encoder.layer.*.output.LayerNorm"),
            (["--explain", "encoder.layer.0"], "modeling_bert.py:184"),
            (["--diagram"], "└─ attention ──┘"),
        ],
    )
    def test_a_view_replaces_the_default_one(
        self, option: list[str], shown: str, written: str
    ) -> None:
        result = run("type:bert", *option, "-f", written)
        assert result.exit_code == 0
        assert shown in result.stdout
        assert "N = LayerNorm" not in result.stdout

    def test_columns_are_honoured_in_a_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        result = run("type:deepseek_v3")
        assert result.stdout == render_table(EVERY["deepseek_v3"], Page(width=60))
        assert result.stdout != render_table(EVERY["deepseek_v3"], PLAIN)


class TestFailures:
    @pytest.mark.parametrize("written", ["table", "json", "jsonl", "markdown"])
    def test_one_bad_target_makes_the_status_3(self, written: str) -> None:
        assert run("type:bert", "./broken", "type:llama", "-f", written).exit_code == 3

    @pytest.mark.parametrize("target", ["./broken", "./absent"])
    def test_a_failure_is_an_object_in_the_same_stream(self, target: str) -> None:
        result = run("type:bert", target, "type:llama", "-f", "jsonl")
        documents = [json.loads(line) for line in result.stdout.splitlines()]
        assert [document["target"] for document in documents] == ["type:bert", target, "type:llama"]
        assert [document["schema"] for document in documents] == [
            "normscope.inspection/1",
            "normscope.failure/1",
            "normscope.inspection/1",
        ]

    def test_json_of_a_failure_alone_is_the_object(self) -> None:
        result = run("./broken", "-f", "json")
        assert json.loads(result.stdout) == {
            "schema": "normscope.failure/1",
            "target": "./broken",
            "kind": "corrupt",
            "message": "config.json is no JSON",
            "hint": "write it anew",
        }
        assert result.exit_code == 3

    def test_a_person_gets_one_line_and_a_hint(self) -> None:
        result = run("./broken")
        assert result.stdout == ""
        assert result.stderr == "error: ./broken: config.json is no JSON\nhint: write it anew\n"

    def test_a_target_is_named_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(target: str, _request: object) -> Answer:
            raise NormscopeError(FailureKind.NOT_FOUND, f"{target}: no such file")

        answering(monkeypatch, ask)
        assert run("./absent").stderr == "error: ./absent: no such file\n"

    def test_the_comparison_has_a_row_for_it(self) -> None:
        row = run("type:bert", "./absent").stdout.splitlines()[2]
        assert row.split() == ["./absent", "not", "inspected", "not_found"]

    def test_quiet_still_says_why(self) -> None:
        assert "config.json is no JSON" in run("./broken", "--quiet").stderr

    def test_verbose_keeps_the_traceback(self) -> None:
        assert "Traceback" in run("./broken", "--verbose").stderr
        assert "Traceback" not in run("./broken").stderr

    def test_an_unforeseen_error_stops_no_other_target(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def ask(target: str, request: object) -> Answer:
            if target == "odd":
                raise ZeroDivisionError("by\x1b[0m zero")
            return made_answer(target, request)

        answering(monkeypatch, ask)
        result = run("odd", "type:bert", "-f", "jsonl")
        failure, answer = map(json.loads, result.stdout.splitlines())
        assert (failure["kind"], answer["target"]) == ("internal", "type:bert")
        assert "ZeroDivisionError: by\\x1b[0m zero" in result.stderr
        assert "report it" in result.stderr
        assert "Traceback" not in result.stderr
        assert "Traceback" in run("odd", "--verbose").stderr

    def test_out_of_memory_has_its_own_kind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(_target: str, _request: object) -> Answer:
            raise MemoryError

        answering(monkeypatch, ask)
        assert json.loads(run("x", "-f", "json").stdout)["kind"] == "out_of_memory"

    def test_an_interrupt_is_130(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(target: str, request: object) -> Answer:
            if target == "type:llama":
                raise KeyboardInterrupt
            return made_answer(target, request)

        answering(monkeypatch, ask)
        result = run("type:bert", "type:llama", "-f", "jsonl")
        assert (result.exit_code, result.stderr) == (130, "interrupted\n")
        assert result.stdout == render_json_line(bert())


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "TARGET"),
            (["type:bert", "--format", "yaml"], "yaml"),
            (["type:bert", "--no-such-option"], "--no-such-option"),
            (["type:bert", "--dtype", "int3"], "int3"),
            (["type:bert", "--explain", "encoder.layer.0", "-f", "json"], "--explain"),
            (["type:bert", "--diagram", "-f", "jsonl"], "--diagram"),
            (["type:bert", "type:llama", "--explain", "layers.0"], "one target"),
            (["type:bert", "--explain", "encoder.layer.99"], "encoder.layer.9"),
            (["-"], "standard input"),
        ],
    )
    def test_a_usage_error_is_2_and_says_what(self, arguments: list[str], said: str) -> None:
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
        assert "Traceback" not in result.stderr

    def test_a_target_that_means_nothing_is_a_usage_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def ask(_target: str, _request: object) -> Answer:
            raise UsageError("type: names no model type", "for example type:bert")

        answering(monkeypatch, ask)
        result = run("type:")
        assert result.exit_code == 2
        assert result.stderr == "error: type: names no model type\nhint: for example type:bert\n"

    def test_targets_come_from_standard_input(self) -> None:
        result = run("type:llama", "-", "-f", "jsonl", stdin="type:bert\n\n  type:t5\n")
        targets = [json.loads(line)["target"] for line in result.stdout.splitlines()]
        assert targets == ["type:llama", "type:bert", "type:t5"]

    def test_options_reach_the_inspection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[object] = []

        def inspect_checkpoint(target: str, options: object) -> Answer:
            seen.append(options)
            return made_answer(target, options)

        monkeypatch.undo()
        monkeypatch.setattr("normscope.pipeline.inspect_checkpoint", inspect_checkpoint)
        flags = ["--revision", "v1", "--dtype", "bfloat16", "--offline", "--trust-remote-code"]
        assert run("type:bert", *flags, "--no-cache").exit_code == 0
        (options,) = seen
        assert options.revision == "v1"
        assert options.dtype == "bfloat16"
        assert options.offline
        assert options.trust_remote_code


class TestStreams:
    def test_what_libraries_print_is_no_result(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ask(target: str, request: object) -> Answer:
            sys.stdout.write("loading weights\n")
            sys.stderr.write("progress\n")
            warnings.warn("slow", stacklevel=1)
            return made_answer(target, request)

        answering(monkeypatch, ask)
        loud = run("type:bert", "-f", "json")
        assert json.loads(loud.stdout)["target"] == "type:bert"
        assert loud.stderr == "loading weights\nprogress\n"
        quiet = run("type:bert", "-f", "json", "--quiet")
        assert (quiet.stdout, quiet.stderr) == (loud.stdout, "")


class TestOutput:
    def test_a_file_holds_what_stdout_would(self, tmp_path: Path) -> None:
        path = tmp_path / "report.json"
        result = run("type:bert", "-f", "json", "-o", str(path))
        assert (result.exit_code, result.stdout) == (0, "")
        assert path.read_text(encoding="utf-8") == render_json(bert())
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]

    def test_a_file_is_written_when_one_target_fails(self, tmp_path: Path) -> None:
        path = tmp_path / "report.jsonl"
        assert run("type:bert", "./broken", "-f", "jsonl", "-o", str(path)).exit_code == 3
        assert len(path.read_text(encoding="utf-8").splitlines()) == 2

    def test_an_interrupted_run_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def ask(_target: str, _request: object) -> Answer:
            raise KeyboardInterrupt

        answering(monkeypatch, ask)
        path = tmp_path / "report.txt"
        path.write_text("old")
        assert run("type:bert", "-o", str(path)).exit_code == 130
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.txt"]

    def test_a_replaced_file_keeps_its_mode(self, tmp_path: Path) -> None:
        path = tmp_path / "report.txt"
        path.write_text("old")
        path.chmod(0o640)
        run("type:bert", "-o", str(path))
        assert path.stat().st_mode & 0o777 == 0o640

    def test_a_new_file_has_the_mode_of_any_new_file(self, tmp_path: Path) -> None:
        (tmp_path / "plain").touch()
        run("type:bert", "-o", str(tmp_path / "report.txt"))
        modes = {entry.stat().st_mode for entry in tmp_path.iterdir()}
        assert len(modes) == 1

    @pytest.mark.parametrize("name", [".", "absent/report.txt", "link"])
    def test_a_place_that_cannot_hold_it_is_a_usage_error(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        result = run("type:bert", "-o", str(tmp_path / name))
        assert result.exit_code == 2
        assert result.stderr.startswith("error: cannot write ")
        assert (tmp_path / "real").read_text() == "old"

    def test_nothing_is_inspected_for_a_place_that_cannot_hold_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answering(monkeypatch, lambda target, _request: pytest.fail(f"{target} was inspected"))
        assert run("type:bert", "-o", str(tmp_path)).exit_code == 2

    def test_a_device_is_written_as_it_is(self) -> None:
        assert run("type:bert", "-o", os.devnull).exit_code == 0
        assert Path(os.devnull).is_char_device()

    def test_a_dash_is_stdout(self) -> None:
        assert run("type:bert", "-o", "-").stdout == run("type:bert").stdout
