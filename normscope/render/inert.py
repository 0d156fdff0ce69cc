"""Text from outside -> text that steers neither a terminal nor the runner of a pipeline.

GitHub's runner takes a line of a step's output for a command where it begins with `::` after
blanks, and wherever `##[` stands in it (actions/runner, Runner.Common/ActionCommand.cs).
"""

import re

from normscope.render.visible import visible

_COMMANDS = re.compile(r"(?<!\S)::|##\[")
_ESCAPES = {"::": r"\x3a:", "##[": r"#\x23["}


def inert(text: str) -> str:
    r"""Write what would be hidden, and what would begin a command, as escapes (`\x3a:error::`).

    A name with `::` in its middle stays as it is: lines are never broken there.
    """
    return _COMMANDS.sub(lambda found: _ESCAPES[found[0]], visible(text))


def inert_json(text: str) -> str:
    """Return the same JSON, in which nothing begins a command: `##[` stands in strings only."""
    return text.replace("##[", r"\u0023#[")


def inert_xml(text: str) -> str:
    """Return the same XML, in which nothing begins a command."""
    return text.replace("##[", "&#35;#[")
