"""Key of an inspection + assignment -> what was judged of it, kept in a small entry of its own."""

import hashlib
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from normscope.audit.policy import Assignment
from normscope.audit.report import AuditedTarget, Failure
from normscope.cache.documents import plain
from normscope.cache.entries import Code, keep, recall, recall_code
from normscope.cache.steady import looked_up
from normscope.errors import FailureKind
from normscope.limits import Limits

_LASTING = frozenset(
    {
        FailureKind.UNKNOWN_ARCHITECTURE,
        FailureKind.REMOTE_CODE,
        FailureKind.MISSING_DEPENDENCY,
        FailureKind.CORRUPT,
        FailureKind.NO_INPUTS,
        FailureKind.TRACE_FAILED,
    }
)
"""Failures that follow from the config, the installed packages and the code alone."""
_COUNTED = "--max-"
"""What the options of limits that count begin with, and so the hints at them."""


def recall_audited(
    key: str, assignment: Assignment, limits: Limits, folder: Path | None
) -> AuditedTarget | None:
    """Return what was judged of the checkpoint of an inspection's key, under this assignment."""
    entry = recall(_key(key, assignment, limits), AuditedTarget, folder)
    return None if entry is None else replace(entry.answer, place=assignment.place)


def keep_audited(
    key: str,
    assignment: Assignment,
    limits: Limits,
    audited: AuditedTarget,
    folder: Path | None,
) -> None:
    """Keep what was judged; a failure only where the next run would have it again."""
    code = _code_of(key, audited, folder)
    if code is not None:
        keep(_key(key, assignment, limits), audited, code, folder)


def _key(key: str, assignment: Assignment, limits: Limits) -> str:
    """The line of the policy takes no part: it moves with every edit above it."""
    asked = json.dumps([key, plain(replace(assignment, place=None)), plain(limits)], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def _code_of(key: str, audited: AuditedTarget, folder: Path | None) -> Code | None:
    """Return the code that an answer is true of: of a failure no one knows which code ran."""
    if audited.failure is None:
        return recall_code(key, folder)
    if not _lasts(audited.failure):
        return None
    library = looked_up("transformers", _library)
    return None if library is None else Code(trees=(library,))


def _lasts(failure: Failure) -> bool:
    """Counts end in the same place on every machine; time and memory do not."""
    if failure.kind is FailureKind.TOO_LARGE:
        return _COUNTED in failure.hint
    return failure.kind in _LASTING


def _library() -> str | None:
    """Return where transformers lies, without importing it."""
    spec = find_spec("transformers")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent)
