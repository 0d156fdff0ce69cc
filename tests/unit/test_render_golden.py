"""Whole reports, at 80 columns and piped, against the texts in tests/golden."""

import pytest

from golden.cases import FOLDER, golden_texts
from golden.renew import SUFFIXES

CASES = dict(golden_texts())


@pytest.mark.parametrize("name", CASES)
def test_the_report_reads_as_it_was_read(name: str) -> None:
    assert CASES[name] == (FOLDER / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix in SUFFIXES} == set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if ".80." in name])
def test_a_terminal_report_fits_its_columns(name: str) -> None:
    assert max(len(line) for line in CASES[name].splitlines()) <= 80


@pytest.mark.parametrize("name", [name for name in CASES if "color" not in name])
def test_no_report_steers_the_terminal(name: str) -> None:
    printable = CASES[name].replace("\n", "")
    assert printable.isprintable()


@pytest.mark.parametrize("name", [name for name in CASES if ".pipe." in name])
def test_nothing_is_shortened_in_a_pipe(name: str) -> None:
    assert "…" not in CASES[name]
    assert "..." not in CASES[name]


@pytest.mark.parametrize("view", ["blocks", "norms", "table"])
def test_a_pipe_says_what_the_terminal_says(view: str) -> None:
    terminal = CASES[f"swin.{view}.80.txt"].split()
    assert set(terminal) <= set(CASES[f"swin.{view}.pipe.txt"].split())
