"""What was typed -> the texts or token ids to measure on."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from normscope.errors import UsageError
from normscope.render.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredInputs:
    """Texts, or token ids in their place."""

    texts: tuple[str, ...] = ()
    ids: tuple[tuple[int, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.ids)


def read_inputs(
    texts: Sequence[str], file: Path | None, field: str, ids: Sequence[str]
) -> MeasuredInputs:
    """Read `--input`, `--input-file` and `--input-ids`.

    Raises `UsageError` for an empty text, for a file that cannot be read, and for texts and token
    ids together.
    """
    found = [_typed(text) for text in texts]
    if file is not None:
        found += _texts_in(file, field)
    if found and ids:
        raise UsageError("--input-ids takes the place of texts", "give one or the other")
    return MeasuredInputs(texts=tuple(found), ids=tuple(_ids(item) for item in ids))


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


# Files.


def _texts_in(file: Path, field: str) -> list[str]:
    lines = _lines(file)
    texts = list(_fields(lines, file, field)) if file.suffix == ".jsonl" else lines
    kept = [text for text in texts if text.strip()]
    if not kept:
        raise UsageError(f"{_shown(file)} holds no text", "write one sequence a line")
    return kept


def _lines(file: Path) -> list[str]:
    if str(file) == "-":
        return sys.stdin.read().splitlines()
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{_shown(file)} is not UTF-8 text") from error
    except OSError as error:
        raise UsageError(f"cannot read {_shown(file)}: {error.strerror}") from error


def _fields(lines: Sequence[str], file: Path, field: str) -> Iterable[str]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{_shown(file)}, line {number}: not valid JSON: {error}") from error
        text = document.get(field) if isinstance(document, dict) else None
        if not isinstance(text, str):
            raise UsageError(
                f"{_shown(file)}, line {number}: no text under {field!r}",
                "name the key with --field",
            )
        yield text


def _shown(file: Path) -> str:
    return "standard input" if str(file) == "-" else visible(str(file))
