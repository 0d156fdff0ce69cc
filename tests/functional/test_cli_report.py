"""`normscope report`: shards in, one report out."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden.audit_reports import clean, everything, typed
from normscope.audit.findings import Severity
from normscope.audit.report import AuditReport
from normscope.cli.app import app
from normscope.cli.audit_formats import AuditFormat, Reports, audit_text, destinations
from normscope.cli.output import ReaderGoneError
from normscope.errors import UsageError
from normscope.render.audit_documents import render_audit_json_lines
from normscope.render.page import PLAIN

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


def saved(report: AuditReport, name: str = "a.jsonl") -> str:
    Path(name).write_text(render_audit_json_lines(report), encoding="utf-8")
    return name


@pytest.mark.parametrize("written", list(AuditFormat))
def test_a_saved_report_is_written_in_any_format(written: AuditFormat) -> None:
    ended = RUNNER.invoke(app, ["report", saved(everything()), "-f", written.value])
    assert ended.stdout == audit_text(everything(), written, PLAIN)
    assert ended.exit_code == 3
    assert ended.stderr == ""


def test_several_formats_go_to_several_places() -> None:
    name = saved(everything())
    formats = ["-f", "table", "-f", "sarif:out/report.sarif", "-f", "junit:report.xml"]
    Path("out").mkdir()
    ended = RUNNER.invoke(app, ["report", name, *formats])
    assert ended.stdout == audit_text(everything(), AuditFormat.TABLE, PLAIN)
    written = Path("out/report.sarif").read_text(encoding="utf-8")
    assert written == audit_text(everything(), AuditFormat.SARIF, PLAIN)
    written = Path("report.xml").read_text(encoding="utf-8")
    assert written == audit_text(everything(), AuditFormat.JUNIT, PLAIN)


def test_a_format_with_a_file_alone_writes_nothing_to_stdout() -> None:
    ended = RUNNER.invoke(app, ["report", saved(clean()), "-f", "json:report.json"])
    assert ended.stdout == ""
    assert json.loads(Path("report.json").read_text(encoding="utf-8"))["summary"]["clean"] == 2


def test_shards_and_standard_input_are_joined() -> None:
    first, second = clean().targets
    name = saved(replace(clean(), targets=(first,), shard="1/2"))
    other = render_audit_json_lines(replace(clean(), targets=(second,), shard="2/2"))
    ended = RUNNER.invoke(app, ["report", name, "-", "-f", "json"], input=other)
    assert ended.stdout == audit_text(clean(), AuditFormat.JSON, PLAIN)
    assert (ended.exit_code, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("report", "fail_on", "status"),
    [
        (clean(), "warning", 0),
        (typed(), "warning", 1),
        (typed(), "error", 0),
        (typed(), "note", 1),
        (everything(), "error", 3),
        (replace(clean(), interrupted=True), "error", 3),
        (
            replace(everything(), targets=everything().targets[:1], gone=everything().gone),
            "note",
            0,
        ),
    ],
)
@pytest.mark.parametrize("written", ["table", "github", "junit"])
def test_the_status_is_that_of_the_audit(
    report: AuditReport, fail_on: str, status: int, written: str
) -> None:
    arguments = ["report", saved(report), "-f", written, "--fail-on", fail_on]
    assert RUNNER.invoke(app, arguments).exit_code == status


def test_a_report_is_not_written_over_what_it_joins() -> None:
    name = saved(clean())
    before = Path(name).read_bytes()
    ended = RUNNER.invoke(app, ["report", name, "-f", "table", "-f", f"json:./{name}"])
    assert ended.exit_code == 2
    assert f"{name} would be written over a file that is read" in ended.stderr
    assert Path(name).read_bytes() == before


def test_what_is_missing_is_said_on_stderr() -> None:
    name = saved(replace(clean(), shard="1/2"))
    ended = RUNNER.invoke(app, ["report", name, "--quiet"])
    assert ended.stderr == "warning: shard 2/2 is missing\n"
    assert "the audit is not complete" in ended.stdout
    assert ended.exit_code == 3


@pytest.mark.parametrize("text", ["", '{"checked": ["NS1'])
def test_a_shard_without_an_answer_is_a_warning_beside_the_healthy_ones(text: str) -> None:
    Path("e.jsonl").write_text(text, encoding="utf-8")
    ended = RUNNER.invoke(app, ["report", "e.jsonl", saved(typed())])
    assert ended.stderr.startswith("warning: e.jsonl: it")
    assert typed().targets[0].target in ended.stdout
    assert ended.exit_code == 3
    assert RUNNER.invoke(app, ["report", "e.jsonl"]).exit_code == 3


def test_explanations_are_there_when_asked_for() -> None:
    assert "    why   " in RUNNER.invoke(app, ["report", saved(typed()), "--explain"]).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-file"], "cannot read no-such-file: No such file or directory"),
        (["."], "cannot read .: Is a directory"),
        (["x\0y"], "cannot read x\\x00y"),
        (["not-text"], "not-text is not UTF-8 text"),
        (["hello"], "hello, line 1: not a line of an audit's report"),
        (["-", "-"], "standard input can be read once only"),
        (["hello", "-f", "sarfi"], "there is no format 'sarfi'\nhint: did you mean sarif?"),
        (["hello", "-f", "json", "-f", "sarif"], "json and sarif cannot both go to one place"),
        (["hello", "-f", "sarif:"], "`-f sarif:` names no file\nhint: write `-f sarif:FILE`"),
        (["hello", "-f", "sarif:no/x"], "cannot write no/x: there is no directory no"),
        (["hello", "-f", "json:x", "-f", "sarif:./x"], "two formats cannot go to one file: x"),
        (["hello", "-f", "json:x", "-o", "y"], "--output FILE is for a format without a file"),
    ],
)
def test_what_cannot_be_done_is_a_usage_error(arguments: list[str], said: str) -> None:
    Path("not-text").write_bytes(b"\xff\xfe{")
    Path("hello").write_text("hello", encoding="utf-8")
    ended = RUNNER.invoke(app, ["report", *arguments])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert ended.stdout == ""
    assert {path.name for path in Path().iterdir()} == {"not-text", "hello"}


def test_output_is_the_file_of_the_format_that_names_none() -> None:
    placed = destinations(["junit:r.xml", "json"], Path("r.json"))
    assert [(one.format.value, str(one.path)) for one in placed] == [
        ("junit", "r.xml"),
        ("json", "r.json"),
    ]
    assert destinations(None, None)[0].format is AuditFormat.TABLE
    assert destinations(["json:-"], None)[0].path is None
    with pytest.raises(UsageError):
        destinations(["json:-", "table"], None)


def test_the_job_summary_is_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n", encoding="utf-8")
    name = saved(everything())
    ended = RUNNER.invoke(app, ["report", name, "-f", "github"])
    assert ended.stdout == audit_text(everything(), AuditFormat.GITHUB, PLAIN)
    expected = audit_text(everything(), AuditFormat.MARKDOWN, PLAIN)
    assert Path("summary.md").read_text(encoding="utf-8") == f"before\n{expected}"
    RUNNER.invoke(app, ["report", name, "-f", "table"])
    assert Path("summary.md").read_text(encoding="utf-8") == f"before\n{expected}"


@pytest.mark.parametrize("name", ["full.md", "no/such/folder.md"])
def test_a_job_summary_that_takes_no_more_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    Path("full.md").write_bytes(b"x" * (1024 * 1024 - 100))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", name)
    ended = RUNNER.invoke(app, ["report", saved(clean()), "-f", "github"])
    assert ended.exit_code == 0
    assert ended.stderr.startswith("warning: ")
    assert ended.stdout == audit_text(clean(), AuditFormat.GITHUB, PLAIN)


def test_a_report_is_joined_without_torch() -> None:
    program = (
        "import sys; from normscope.cli.app import main\n"
        f"sys.argv = ['normscope', 'report', {saved(typed())!r}, '-f', 'sarif']\n"
        "try: main()\n"
        "except SystemExit: sys.stderr.write(str('torch' in sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stderr == "False"


class GoneReader:
    """A stdout whose reader has left."""

    page = PLAIN

    def write(self, text: str) -> None:
        raise ReaderGoneError


class Kept:
    """An output that keeps what it is given."""

    page = PLAIN

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def test_files_are_written_though_the_reader_of_stdout_has_left() -> None:
    kept = Kept()
    outputs = [(AuditFormat.JSONL, GoneReader()), (AuditFormat.JSONL, kept)]
    reports = Reports(outputs, explain=False, fail_on=Severity.WARNING)
    for target in clean().targets:
        reports.answered(target)
    reports.finish(clean())
    assert kept.text == audit_text(clean(), AuditFormat.JSONL, PLAIN)


def test_without_files_a_run_ends_when_its_reader_has_left() -> None:
    outputs = [(AuditFormat.TABLE, GoneReader())]
    reports = Reports(outputs, explain=False, fail_on=Severity.WARNING)
    with pytest.raises(ReaderGoneError):
        reports.finish(clean())


def test_every_severity_is_a_fail_level() -> None:
    assert [severity.value for severity in Severity] == ["note", "warning", "error"]
