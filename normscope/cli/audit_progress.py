"""How many targets are answered -> a bar on stderr, where that is a terminal."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def counting(targets: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Give what is to be called for each answer; the bar is gone afterwards."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nothing
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr, no_color=bool(os.environ.get("NO_COLOR")) or None),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        yield partial(bar.advance, bar.add_task("targets", total=targets))


def _nothing() -> None:
    pass
