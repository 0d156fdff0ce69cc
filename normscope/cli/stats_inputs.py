"""What was typed -> the texts or token ids to measure on."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from normscope.cli.text_files import TextFile, open_texts
from normscope.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredInputs:
    """Texts, or token ids in their place."""

    typed: tuple[str, ...] = ()
    file: TextFile | None = None
    ids: tuple[tuple[int, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.typed or self.file or self.ids)

    def texts(self) -> Iterable[str]:
        """Return the texts, which are read while they are taken."""
        return self.typed if self.file is None else _Texts(self.typed, self.file)

    def close(self) -> None:
        """Let go of what a stream held."""
        if self.file is not None and self.file.copy is not None:
            self.file.copy.close()

    def count(self) -> int | None:
        """Return how many sequences there are, None where that is not known."""
        if self.file is None:
            return len(self.typed) + len(self.ids)
        return None if self.file.count is None else len(self.typed) + self.file.count


@dataclass(frozen=True, slots=True)
class _Texts:
    """What was typed and then what the file holds."""

    typed: tuple[str, ...]
    file: TextFile

    def __iter__(self) -> Iterator[str]:
        yield from self.typed
        yield from self.file


def read_inputs(
    texts: Sequence[str], file: Path | None, field: str | None, ids: Sequence[str], *, targets: int
) -> MeasuredInputs:
    """Read `--input` and `--input-ids`, and look through `--input-file`.

    Raises `UsageError` for an empty text, for a file that cannot be read, and for texts and token
    ids together.
    """
    typed = tuple(_typed(text) for text in texts)
    if (typed or file is not None) and ids:
        raise UsageError("--input-ids takes the place of texts", "give one or the other")
    return MeasuredInputs(
        typed=typed,
        file=None if file is None else open_texts(file, field, again=targets > 1),
        ids=tuple(_ids(item) for item in ids),
    )


def _typed(text: str) -> str:
    found = sys.stdin.read().removesuffix("\n") if text == "-" else text
    if not found.strip():
        where = "standard input" if text == "-" else "--input"
        raise UsageError(f"{where} is empty", "give some text")
    return found


def _ids(typed: str) -> tuple[int, ...]:
    try:
        found = tuple(int(item) for item in typed.replace(",", " ").split())
    except ValueError as error:
        raise UsageError(
            f"--input-ids takes whole numbers, not {typed!r}", "write them like 101,2023,102"
        ) from error
    if not found:
        raise UsageError("--input-ids is empty", "write them like 101,2023,102")
    return found
