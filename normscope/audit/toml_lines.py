"""TOML text -> the line of each of its tables, keys and array elements."""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]
"""Keys of tables and numbers of array elements, from the top of the file."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_TEXT = re.compile(
    r"""
    \"{3} (?: \\. | [^\\] )*? \"{3,5}
    | '{3} .*? '{3,5}
    | \" (?: \\. | [^"\\] )* \"
    | ' [^']* '
    """,
    re.DOTALL | re.VERBOSE,
)
"""A string of each of the four kinds; a longer one may end with quotes of its own."""
_WORD = re.compile(r"[^,\]}#\r\n]*")
"""A number, a date or a truth value."""


def toml_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the lines, counted from 1; `text` must be what tomllib reads without an error.

    A table that several headers share has the line of the first.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


@dataclass(slots=True)
class _Scanner:
    text: str
    at: int = 0
    lines: dict[KeyPath, int] = field(default_factory=dict)
    last: dict[KeyPath, int] = field(default_factory=dict)
    """Path of an array of tables -> number of its last element."""
    ends: list[int] = field(init=False)
    """Offsets of the ends of lines."""

    def __post_init__(self) -> None:
        self.ends = [found.start() for found in re.finditer("\n", self.text)]

    def document(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _header(self) -> KeyPath:
        """Read `[a.b]` or `[[a.b]]`; return the path of the table that it opens."""
        begin, many = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        self._skip(_BLANK)
        *owners, name = self._key()
        self._skip(_BLANK)
        self.at += 2 if many else 1
        path: KeyPath = ()
        for owner in owners:
            path = self._newest(self._noted((*path, owner), begin))
        path = self._noted((*path, name), begin)
        if many:
            self.last[path] = self.last.get(path, -1) + 1
            path = self._noted(self._newest(path), begin)
        return path

    def _newest(self, path: KeyPath) -> KeyPath:
        """Return the path of the last element, where `path` is an array of tables."""
        return (*path, self.last[path]) if path in self.last else path

    def _pair(self, table: KeyPath) -> None:
        begin, path = self.at, table
        for part in self._key():
            path = self._noted((*path, part), begin)
        self._skip(_EQUALS)
        self._value(path)

    def _key(self) -> tuple[str, ...]:
        """Read a dotted key; tomllib undoes its quotes and escapes."""
        found: object = tomllib.loads(self._taken(_KEY) + " = 0")
        parts = []
        while isinstance(found, dict):
            ((part, found),) = found.items()
            parts.append(part)
        return tuple(parts)

    def _value(self, path: KeyPath) -> None:
        match self.text[self.at]:
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._skip(_TEXT)
            case _:
                self._skip(_WORD)

    def _array(self, path: KeyPath) -> None:
        number = 0
        self.at += 1
        while self._more("]"):
            self._value(self._noted((*path, number), self.at))
            number += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self._more("}"):
            self._pair(path)

    def _more(self, closing: str) -> bool:
        """Go on to the next element, or behind the `closing` bracket."""
        self._skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self._skip(_BLANK)
        if self.text[self.at] != closing:
            return True
        self.at += 1
        return False

    def _noted(self, path: KeyPath, at: int) -> KeyPath:
        self.lines.setdefault(path, bisect_right(self.ends, at) + 1)
        return path

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._taken(pattern)

    def _taken(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:  # only in what is no TOML
            raise ValueError(f"TOML is expected at offset {self.at}")
        self.at = found.end()
        return found.group()
