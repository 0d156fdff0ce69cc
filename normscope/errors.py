"""Everything that can go wrong, as values that name the target, the stage and the next command."""

from enum import StrEnum
from pathlib import Path


class FailureKind(StrEnum):
    """Why a target has no answer; the words of `normscope.failure/1`."""

    NOT_FOUND = "not_found"
    GATED = "gated"
    OFFLINE = "offline"
    NO_CONFIG = "no_config"
    UNKNOWN_ARCHITECTURE = "unknown_architecture"
    REMOTE_CODE = "remote_code"
    UNSAFE_WEIGHTS = "unsafe_weights"
    ADAPTER_ONLY = "adapter_only"
    CORRUPT = "corrupt"
    MISSING_DEPENDENCY = "missing_dependency"
    NO_INPUTS = "no_inputs"
    TRACE_FAILED = "trace_failed"
    TOO_LARGE = "too_large"
    OUT_OF_MEMORY = "out_of_memory"
    INTERNAL = "internal"


class NormscopeError(Exception):
    """A target could not be answered.

    `message` says what happened and at which stage; `hint` is the next thing to type or check.
    """

    def __init__(self, kind: FailureKind, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint


class AdapterOnlyError(NormscopeError):
    """A target holds an adapter and no model; `base` is what it was trained on, if it says so."""

    def __init__(self, message: str, hint: str, *, base: str | None, directory: Path) -> None:
        super().__init__(FailureKind.ADAPTER_ONLY, message, hint)
        self.base = base
        self.directory = directory


class UsageError(Exception):
    """What was typed cannot be carried out, whatever the target holds; exit status 2.

    `others` are further mistakes in the same file: all are told at once.
    """

    def __init__(
        self, message: str, hint: str = "", *, others: tuple["UsageError", ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.others = others
