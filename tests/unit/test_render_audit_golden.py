"""Whole reports of audits, in every format, against the texts in tests/golden/audits."""

import pytest

from golden.audit_cases import FOLDER, golden_texts

CASES = dict(golden_texts())


@pytest.mark.parametrize("name", CASES)
def test_the_report_reads_as_it_was_read(name: str) -> None:
    assert CASES[name].encode() == (FOLDER / name).read_bytes()


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if ".80." in name])
def test_a_terminal_report_fits_its_columns(name: str) -> None:
    assert max(len(line) for line in CASES[name].splitlines()) <= 80


@pytest.mark.parametrize("name", CASES)
def test_no_format_steers_a_terminal(name: str) -> None:
    assert CASES[name].replace("\n", "").isprintable()


@pytest.mark.parametrize("name", ["everything", "hostile"])
def test_a_pipe_says_what_the_terminal_says(name: str) -> None:
    assert CASES[f"{name}.80.txt"].split() == CASES[f"{name}.pipe.txt"].split()
