"""What was typed -> the targets that it names."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from normscope.errors import UsageError


def named_targets(arguments: Sequence[str]) -> list[str]:
    """Return the targets, with `-` replaced by the lines of standard input.

    Blank lines and those that begin with `#` are skipped. Raises `UsageError` where no target is
    left.
    """
    targets: list[str] = []
    for argument in arguments:
        if argument == "-":
            lines = (line.removeprefix("\ufeff").strip() for line in sys.stdin)
            targets.extend(line for line in lines if line and not line.startswith("#"))
        else:
            targets.append(argument)
    if not targets:
        raise UsageError("standard input names no target", "write one target a line")
    return targets


def files_named(targets: Sequence[str]) -> Iterator[Path]:
    """Yield the targets that are files."""
    for target in targets:
        with suppress(OSError, ValueError):
            if Path(target).is_file():
                yield Path(target)
