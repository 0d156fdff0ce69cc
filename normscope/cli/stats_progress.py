"""How far a run is -> a bar on stderr, where that is a terminal."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from normscope.render.figures import counted
from normscope.render.visible import visible


@dataclass(slots=True)
class Follower:
    """Counts what was measured, and shows it on the bar if there is one."""

    total: int | None
    """How many sequences there are, if that is known."""
    bar: Progress | None = None
    task: TaskID | None = None
    sequences: int = 0
    tokens: int = 0
    _begun: float | None = None

    def measured(self, sequences: int, tokens: int) -> None:
        """Take note of so many more; the bar appears when more are to come."""
        self.sequences += sequences
        self.tokens += tokens
        if self.bar is None or self.task is None:
            return
        if self._begun is None:
            self._begun = time.monotonic()
            if self.total is None or self.sequences < self.total:
                self.bar.start()
        self.bar.update(self.task, completed=self.sequences, words=self._words())

    def _words(self) -> str:
        elapsed = time.monotonic() - (self._begun or time.monotonic())
        words = counted(self.tokens, "token")
        return f"{words}, {self.tokens / elapsed:,.0f}/s" if elapsed > 0 else words

    def so_far(self) -> str:
        """Return `12 sequences (3,456 tokens)`."""
        return f"{counted(self.sequences, 'sequence')} ({self.tokens:,} tokens)"


@contextmanager
def following(target: str, total: int | None, *, quiet: bool) -> Iterator[Follower]:
    """Follow one target; the bar is gone afterwards."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Follower(total)
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr, no_color=bool(os.environ.get("NO_COLOR")) or None),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task(visible(target), total=total, words="")
    try:
        yield Follower(total, bar, task)
    finally:
        bar.stop()
