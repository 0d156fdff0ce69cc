"""`--input-file` -> its texts, one after the other, as often as they are asked for."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from normscope.errors import UsageError
from normscope.render.visible import visible

_OBJECTS = frozenset({".jsonl", ".ndjson"})
_DEFAULT_FIELD = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file of texts, read anew each time; a stream that cannot be is read once."""

    path: Path
    field: str | None
    """Where a line, a JSON object, has its text; None where the line is the text."""
    count: int | None = None
    """How many texts there are; None for a stream."""
    copy: TextIO | None = None
    """What a stream held, where it is read more than once."""

    def __iter__(self) -> Iterator[str]:
        found = False
        with _translated(self.path), self._opened() as lines:
            for number, line in enumerate(lines, start=1):
                text = _text(line.rstrip("\r\n"), self, number)
                if text.strip():
                    found = True
                    yield text
        if not found:
            raise UsageError(f"{shown(self.path)} holds no text", "write one sequence a line")

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        if self.copy is not None:
            self.copy.seek(0)
            yield self.copy
        elif str(self.path) == "-":
            yield sys.stdin
        else:
            with self.path.open(encoding="utf-8-sig") as file:
                yield file


def open_texts(path: Path, field: str | None, *, again: bool) -> TextFile:
    """Look through a file from end to end before any work is done, or take a stream as it comes.

    `again` says that it will be read more than once. Raises `UsageError` for a file that cannot be
    read, holds no text, or has a line that is not as it should be.
    """
    objects = field is not None or path.suffix in _OBJECTS
    texts = TextFile(path=path, field=(field or _DEFAULT_FIELD) if objects else None)
    if _is_stream(path):
        return replace(texts, copy=_copied(texts)) if again else texts
    return replace(texts, count=sum(1 for _ in texts))


def _is_stream(path: Path) -> bool:
    """Tell whether what is read once is gone."""
    with _translated(path):
        return str(path) == "-" or path.is_fifo() or path.is_char_device() or path.is_socket()


def _copied(texts: TextFile) -> TextIO:
    # Closed by `MeasuredInputs.close`; it has no name.
    copy = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
    with _translated(texts.path), texts._opened() as lines:
        shutil.copyfileobj(lines, copy)
    return copy


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(path)} is not UTF-8 text") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {error.strerror}") from error


def _text(line: str, texts: TextFile, number: int) -> str:
    if texts.field is None or not line.strip():
        return line
    where = f"{shown(texts.path)}, line {number}"
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
        raise UsageError(f"{where}: not valid JSON: {error}") from error
    text = document.get(texts.field) if isinstance(document, dict) else None
    if not isinstance(text, str):
        raise UsageError(f"{where}: no text under {texts.field!r}", "name the key with --field")
    return text


def shown(path: Path) -> str:
    """Return what a message calls the file."""
    return "standard input" if str(path) == "-" else visible(str(path))
