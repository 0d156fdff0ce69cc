"""What was typed -> targets, with `-` for the lines of standard input."""

import io

import pytest

from normscope.cli.targets import named_targets
from normscope.errors import UsageError

LINES = """\
\ufeff# encoders, with the mark that Windows begins files with
type:bert

  type:roberta\t
  # a comment that is indented
#type:t5
./#1
type:gpt2 # no comment: a name may hold one
"""


def test_lines_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(LINES))
    assert named_targets(["first", "-", "#last"]) == [
        "first",
        "type:bert",
        "type:roberta",
        "./#1",
        "type:gpt2 # no comment: a name may hold one",
        "#last",
    ]


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing\n"])
def test_nothing_but_comments_is_a_mistake(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(UsageError, match="standard input names no target"):
        named_targets(["-"])
