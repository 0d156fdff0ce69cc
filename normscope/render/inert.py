"""Text from outside -> text that steers neither a terminal nor the runner of a pipeline.

GitHub's runner takes a line of a step's output for a command where it begins with `::` after
blanks, and wherever `##[` stands in it (actions/runner, Runner.Common/ActionCommand.cs). Azure's
agent takes `##vso[` anywhere, TeamCity `##teamcity[` at the beginning.
"""

import re

from normscope.render.visible import unhidden, visible

_COMMANDS = re.compile(r"(?<!\S)::|##(?=\w*\[)")
_COMMANDS_OF_LINE = re.compile(r"^\s*::|##(?=\w*\[)")
_HASHES = re.compile(r"##(?=\w*\[)")


def inert(text: str) -> str:
    r"""Write what would be hidden, and what would begin a command, as escapes (`\x3a:error::`).

    A name with `::` in its middle stays as it is: lines are never broken there.
    """
    return _COMMANDS.sub(_escaped, visible(text))


def inert_line(line: str) -> str:
    """Return a whole line, laid out already, as one that is shown and obeyed by nothing.

    Other than in `inert`, a word `::` stays as it is where it does not begin the line.
    """
    return _COMMANDS_OF_LINE.sub(_escaped, unhidden(line))


def inert_json(text: str) -> str:
    """Return the same JSON, in which nothing begins a command: `##[` stands in strings only."""
    return _HASHES.sub(r"\\u0023#", text)


def inert_xml(text: str) -> str:
    """Return the same XML, in which nothing begins a command."""
    return _HASHES.sub("&#35;#", text)


def _escaped(command: re.Match[str]) -> str:
    text = command[0]
    return r"#\x23" if text == "##" else text.removesuffix("::") + r"\x3a:"
