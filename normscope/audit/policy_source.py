"""Path of a TOML file -> its tables, the line of each key, and what is wrong with it."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from normscope.audit.policy import Place
from normscope.audit.toml_lines import KeyPath, toml_lines
from normscope.errors import UsageError

_WRITE_ONE = "`normscope audit --init TARGET…` writes a policy from what targets are today"
_CLOSED = "a table in braces is closed, and a key stands once: write the table with a header"
_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """A policy file that is TOML; what is wrong with it is noted while it is read."""

    file: str
    """As it was named, with `/` between folders."""
    document: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    mistakes: list[tuple[int, UsageError]] = field(default_factory=list)
    """Each with its line."""

    def place(self, path: KeyPath) -> Place:
        """Return the line of a key, or of the table that it stands in."""
        while path and path not in self.lines:
            path = path[:-1]
        return Place(file=self.file, line=self.lines.get(path, 1))

    def wrong(self, path: KeyPath, message: str, hint: str = "") -> None:
        """Note a mistake in the line of a key."""
        place = self.place(path)
        self.mistakes.append((place.line, mistake(place, message, hint)))

    def raise_mistakes(self) -> None:
        """Raise what is wrong, line by line; nothing where all is well."""
        raise_all(found for _, found in sorted(self.mistakes, key=lambda noted: noted[0]))


def mistake(place: Place, message: str, hint: str = "") -> UsageError:
    """Return an error that names its line as compilers do: `normscope.toml:4: …`."""
    return UsageError(f"{place.file}:{place.line}: {message}", hint)


def raise_all(mistakes: Iterable[UsageError]) -> None:
    """Raise the first mistake with the others beside it; nothing where there is none."""
    found = tuple(mistakes)
    if found:
        raise UsageError(found[0].message, found[0].hint, others=found[1:])


def open_source(path: Path) -> PolicySource:
    """Read a TOML file; raises `UsageError` where it cannot be read or is not TOML."""
    file = path.as_posix()
    text = _decoded(file, _content(path, file))
    try:
        document = tomllib.loads(text)
        lines = toml_lines(text)
    except (ValueError, RecursionError) as error:
        raise _not_toml(file, text, error) from error
    return PolicySource(file=file, document=document, lines=lines)


def did_you_mean(word: str, known: Iterable[str], kind: str) -> str:
    """Return a hint: the nearest of the known words, or all of them."""
    words = list(known)
    lowered = {each.lower(): each for each in words}
    near = get_close_matches(word.lower(), lowered, n=1, cutoff=0.55)
    if near:
        return f"did you mean `{lowered[near[0]]}`?"
    return f"{kind}: {', '.join(f'`{each}`' for each in words)}"


def _content(path: Path, file: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        hint = _WRITE_ONE if isinstance(error, FileNotFoundError) else "name a TOML file"
        raise UsageError(f"{file}: the policy cannot be read: {why}", hint) from error
    except ValueError as error:
        raise UsageError(f"{file!r} is no path: {error}") from error


def _decoded(file: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        place = Place(file=file, line=content.count(b"\n", 0, error.start) + 1)
        raise mistake(place, f"not UTF-8: {error.reason}", "TOML files are UTF-8 text") from error


def _not_toml(file: str, text: str, error: ValueError | RecursionError) -> UsageError:
    message = str(error)
    found = _WHERE.search(message)
    if found is None:
        return UsageError(f"{file}: not TOML: {message}")
    line = int(found[1]) if found[1] else text.rstrip().count("\n") + 1
    column = f" (column {found[2]})" if found[2] else " (the file ends there)"
    what = f"not TOML: {_WHERE.sub('', message)}{column}"
    return mistake(Place(file=file, line=line), what, _CLOSED if "Cannot" in message else "")
