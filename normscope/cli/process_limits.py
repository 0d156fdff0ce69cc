"""`--timeout` and `--memory-limit`: how long a process may work on one target, and how large it
may grow."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from normscope.cli.sizes import read_size
from normscope.errors import FailureKind, UsageError
from normscope.inspection import Uninspectable

_PROC = Path("/proc/self/status")
_HELD = ("RssAnon:", "RssShmem:", "VmSwap:")
"""What a process has of its own: pages of files, as of weights that are mapped, can be let go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What one target may cost; None for any amount."""

    seconds: float | None = None
    memory: int | None = None
    """Bytes of one process."""
    typed_memory: str = ""
    """As the user wrote it."""

    def __bool__(self) -> bool:
        return self.seconds is not None or self.memory is not None

    def passed(self, target: str, process: int, seconds: float) -> Uninspectable | None:
        """Return the failure of a process that has gone too far, None while it has not."""
        if self.seconds is not None and seconds > self.seconds:
            return Uninspectable(
                target=target,
                kind=FailureKind.TOO_LARGE,
                message=f"took longer than --timeout {self.seconds:g} and was ended",
                hint="give it more seconds with --timeout",
            )
        if self.memory is not None and held_memory(process) > self.memory:
            return Uninspectable(
                target=target,
                kind=FailureKind.TOO_LARGE,
                message=f"took more than --memory-limit {self.typed_memory} and was ended",
                hint="give it more with --memory-limit",
            )
        return None


def read_limits(seconds: float | None, memory: str | None) -> ProcessLimits:
    """Return what was typed; raises `UsageError` for what is no size or cannot be watched here."""
    if memory is None:
        return ProcessLimits(seconds=seconds)
    if sys.platform == "win32":
        raise UsageError("--memory-limit is not available on Windows", "use --timeout")
    size = read_size(memory, "--memory-limit")
    return ProcessLimits(seconds=seconds, memory=size, typed_memory=memory.strip())


def held_memory(process: int) -> int:
    """Return how many bytes a process holds; 0 for one that is gone."""
    try:
        if _PROC.exists():
            return _told_by_linux(Path(f"/proc/{process}/status").read_text(encoding="ascii"))
        return _told_by_ps(process)
    except (OSError, ValueError):
        return 0


def _told_by_linux(status: str) -> int:
    lines = (line.split() for line in status.splitlines())
    return 1024 * sum(int(words[1]) for words in lines if words and words[0] in _HELD)


def _told_by_ps(process: int) -> int:
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return 1024 * int(told.stdout)
