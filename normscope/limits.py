"""What one answer may take of the machine: a stranger's file must not fill it or stop it.

Counts come first, because they end in the same place on every machine; time and memory stop what
nothing counts.
"""

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from normscope.errors import FailureKind, NormscopeError

_AGAIN = 1.0
"""Seconds after which a limit of time is told once more: foreign code may have swallowed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Beyond these a target is `too_large`; what transformers builds of released models fits."""

    config_bytes: int = 32_000_000
    config_depth: int = 100
    """How deep the values of a config may lie in one another."""
    config_seconds: float = 10.0
    """Of computing, for making its object of a config."""
    index_bytes: int = 200_000_000
    """Of the list of tensors beside sharded weights."""
    tokenizer_bytes: int = 300_000_000
    """Of each file; the longest of released models have a tenth of it."""
    modules: int = 200_000
    """Modules that a model may be built of."""
    operations: int = 500_000
    """Operations that one forward pass may run while it is recorded."""
    seconds: float | None = None
    """Of computing, for building and running a model: a busy machine changes no answer."""
    memory: int | None = None
    """Bytes that the process may take on for the same, beside what it has."""


class OverLimit(BaseException):
    """A limit is reached in the midst of foreign code, whose handlers must not hide it."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def failure_of_size(error: BaseException) -> FailureKind | None:
    """Return what kind of answer a foreign error about sizes makes; None for all other errors.

    `out_of_memory` where a machine lacks it, `too_large` where no number can count so much.
    """
    if isinstance(error, MemoryError) or _says(error, _NO_MEMORY):
        return FailureKind.OUT_OF_MEMORY
    if isinstance(error, OverflowError) or _says(error, ("overflow",)):
        return FailureKind.TOO_LARGE
    return None


_NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
"""torch's words on its devices."""


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    foreign = isinstance(error, RuntimeError | TypeError | ValueError)
    return foreign and any(word in str(error).lower() for word in words)


@contextmanager
def within(target: str, limits: Limits) -> Iterator[None]:
    """Keep the block within the limits of time and memory, and tell of every limit it reaches.

    Both are the whole process's: they are kept in its main thread alone, and memory on Linux alone.
    Raises `NormscopeError` of kind `too_large`.
    """
    try:
        with _within_seconds(limits.seconds), _within_memory(limits.memory):
            yield
    except OverLimit as over:
        raise _too_large(target, over.what, over.hint) from over
    except (MemoryError, NormscopeError) as error:
        kind = error.kind if isinstance(error, NormscopeError) else FailureKind.OUT_OF_MEMORY
        if limits.memory is None or kind is not FailureKind.OUT_OF_MEMORY:
            raise
        what = f"it needs more than the {limits.memory / 1e9:g} GB of memory that it may take"
        raise _too_large(target, what, "let it have more: --memory-limit SIZE") from error


def making_config(limits: Limits) -> AbstractContextManager[None]:
    """Return the context for making a config's object of it; raises `OverLimit` in it."""
    if not _can_time():
        return nullcontext()
    over = OverLimit(f"its config takes more than {limits.config_seconds:g} seconds of computing")
    return _timed(signal.ITIMER_VIRTUAL, signal.SIGVTALRM, limits.config_seconds, over)


def _within_seconds(seconds: float | None) -> AbstractContextManager[None]:
    if seconds is None or not _can_time():
        return nullcontext()
    over = OverLimit(
        f"building and running it takes more than {seconds:g} seconds of computing",
        "let it have more: --timeout SECONDS",
    )
    return _timed(signal.ITIMER_PROF, signal.SIGPROF, seconds, over)


def _can_time() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


@contextmanager
def _timed(timer: int, number: int, seconds: float, over: OverLimit) -> Iterator[None]:
    running = True

    def ring(_number: int, _frame: FrameType | None) -> None:
        if running:
            raise over

    before = signal.signal(number, ring)
    signal.setitimer(timer, seconds, _AGAIN)
    try:
        yield
    finally:
        running = False
        signal.setitimer(timer, 0)
        signal.signal(number, before)


@contextmanager
def _within_memory(most: int | None) -> Iterator[None]:
    """Let the system refuse more; what it counts are pages that only this process writes to."""
    held = None if most is None else _bytes_held()
    if most is None or held is None:
        yield
        return
    import resource

    soft, hard = before = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [bound for bound in before if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([held + most, *bounds]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _bytes_held() -> int | None:
    """Return what the system holds the limit against; None where that cannot be asked."""
    if sys.platform != "linux":
        return None
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmData:\s*(\d+) kB$", status, re.MULTILINE)
    return None if found is None else 1024 * int(found.group(1))


def _too_large(target: str, what: str, hint: str) -> NormscopeError:
    return NormscopeError(FailureKind.TOO_LARGE, f"{target}: {what}", hint)
