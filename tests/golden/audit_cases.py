"""Every golden text of audits; `PYTHONPATH=tests python -m golden.audit_cases` writes them anew."""

from collections.abc import Iterator
from pathlib import Path

from golden.audit_reports import clean, everything, hostile, typed
from normscope.cli.audit_formats import AuditFormat, audit_text
from normscope.render.page import PLAIN, Page

FOLDER = Path(__file__).parent / "audits"
TERMINAL = Page(width=80)
ENDINGS = {
    AuditFormat.JSON: "json",
    AuditFormat.JSONL: "jsonl",
    AuditFormat.MARKDOWN: "md",
    AuditFormat.GITHUB: "github.txt",
    AuditFormat.SARIF: "sarif",
    AuditFormat.JUNIT: "xml",
}
REPORTS = {"everything": everything(), "clean": clean(), "typed": typed(), "hostile": hostile()}


def golden_texts() -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each golden file."""
    for name, report in REPORTS.items():
        yield f"{name}.80.txt", audit_text(report, AuditFormat.TABLE, TERMINAL)
        yield f"{name}.pipe.txt", audit_text(report, AuditFormat.TABLE, PLAIN)
    explained = audit_text(REPORTS["everything"], AuditFormat.TABLE, TERMINAL, explain=True)
    yield "everything.explained.80.txt", explained
    for name in ("everything", "hostile"):
        for written, ending in ENDINGS.items():
            yield f"{name}.{ending}", audit_text(REPORTS[name], written, PLAIN)


def renew() -> None:
    """Replace the golden files by what the program writes now; read the difference."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name, text in golden_texts():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    renew()
