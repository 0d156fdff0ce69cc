"""Path of a baseline or a lock file -> its document, where this version can read it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normscope.audit.fields import Fields
from normscope.errors import UsageError
from normscope.versions import versions

_SCHEMA = re.compile(r"(?P<name>normscope\.[a-z-]+)/(?P<number>\d{1,9})")
_CONFLICT = re.compile(r"^<{7}", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """A kind of file that normscope writes for later runs."""

    name: str
    """`lock file`."""
    schema: str
    """`normscope.lock/1`."""
    option: str
    """What writes it: `--update-lock`."""


def read_record(path: Path, kind: RecordKind) -> tuple[Fields, str]:
    """Return the document of a file, and its text.

    Raises `UsageError` for a file that cannot be read, is something else, names a key twice, or
    was written by a newer normscope.
    """
    file = path.as_posix()
    text = _text(path, file, kind)
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise _not_json(file, text, kind, error) from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
        raise _another_file(file, kind)
    _check_schema(file, kind, document)
    return Fields.of(document, file), text


def _text(path: Path, file: str, kind: RecordKind) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = f"{kind.option} writes it"
        raise UsageError(f"{file}: there is no such {kind.name}", hint) from error
    except UnicodeDecodeError as error:
        raise _another_file(file, kind) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{file!r}: the {kind.name} cannot be read: {error}") from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{json.dumps(key)} stands twice in one object")
        found[key] = value
    return found


def _not_json(
    file: str, text: str, kind: RecordKind, error: ValueError | RecursionError
) -> UsageError:
    hint = f"resolve it, or write the file again with {kind.option}"
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        line = text.count("\n", 0, conflict.start()) + 1
        return UsageError(f"{file}:{line}: the {kind.name} has a merge conflict", hint)
    place = f"{file}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else file
    why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return UsageError(
        f"{place}: not a {kind.name}: {why}", f"write the file again with {kind.option}"
    )


def _another_file(file: str, kind: RecordKind) -> UsageError:
    return UsageError(
        f"{file}: not a {kind.name}: it has no schema of normscope's",
        f"name a file that {kind.option} wrote",
    )


def _check_schema(file: str, kind: RecordKind, document: Mapping[str, Any]) -> None:
    schema = document["schema"]
    if schema == kind.schema:
        return
    found, known = _SCHEMA.fullmatch(schema), _SCHEMA.fullmatch(kind.schema)
    if found is None or known is None or found["name"] != known["name"]:
        what = json.dumps(schema)
        hint = f"name a file that {kind.option} wrote"
        raise UsageError(f"{file}: not a {kind.name}: its schema is {what}", hint)
    writer = document.get("normscope")
    by = f"normscope {writer}" if isinstance(writer, str) else "a newer normscope"
    raise UsageError(
        f"{file}: {by} wrote this {kind.name} ({schema}), and this one, "
        f"{versions()['normscope']}, reads {kind.schema}",
        f"install that version here, or write the file again with {kind.option}",
    )
