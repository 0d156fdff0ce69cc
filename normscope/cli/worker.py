"""Tasks from a pipe -> their answers, in a process of its own that ends before it grows large."""

import contextlib
import os
import select
import signal
import sys
import threading
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from normscope.cache import code_stays
from normscope.cli.collector import rare_collections
from normscope.cli.failures import answered
from normscope.cli.questions import Question
from normscope.errors import UsageError
from normscope.files import discard_pending

MOST_TASKS = 25
"""A new worker costs milliseconds where it is forked; what libraries leave behind ends with one."""
MOST_MEMORY = 1_200_000_000
"""Bytes that a worker may have held at its highest before it is replaced."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A worker has begun with the task that it was given: the libraries are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a worker says of one task."""

    answer: Any
    """The question's reply, an `Uninspectable`, or a `UsageError`."""
    last: bool
    """Whether the worker ends after it."""


def work(connection: Connection, question: Question[Any, Any]) -> None:
    """Answer tasks until the other side is gone or this process has done its share."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    _end_with_the_parent(connection)
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # results are written by the parent alone, whatever native code prints
    import_module("normscope.cli.worker_imports")  # has happened where this process was forked
    with code_stays():
        _answer_tasks(connection, question)


def _answer_tasks(connection: Connection, question: Question[Any, Any]) -> None:
    for number in range(1, MOST_TASKS + 1):
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(Begun())
        answer = _answer(task, question)
        last = number == MOST_TASKS or _highest_memory() > MOST_MEMORY
        connection.send(Answered(answer=answer, last=last))
        if last:
            return


def _answer(task: Any, question: Question[Any, Any]) -> Any:
    ask = partial(question.ask, task)
    try:
        with rare_collections():
            return answered(
                question.target_of(task), ask, quiet=question.quiet, verbose=question.verbose
            )
    except UsageError as error:
        return error


def _end_with_the_parent(connection: Connection) -> None:
    """Have this process end when the other side of the pipe is closed, also in the middle of work.

    A parent that is killed cannot end its workers.
    """
    if hasattr(select, "poll"):
        threading.Thread(target=_wait_for_the_end, args=(connection.fileno(),), daemon=True).start()


def _wait_for_the_end(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # the end of the other side is told unasked
    poll.poll()
    discard_pending()
    os._exit(1)


def _highest_memory() -> int:
    """Return the most bytes that this process has held so far; 0 where that cannot be asked."""
    if sys.platform == "win32":
        return 0
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else 1024 * highest
