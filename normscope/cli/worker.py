"""Targets from a pipe -> their answers, in a process of its own that ends before it grows large."""

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from normscope.cli import inspect_request
from normscope.cli.failures import answered
from normscope.cli.inspect_request import Request
from normscope.errors import UsageError
from normscope.inspection import Answer

MOST_TARGETS = 25
"""A new worker costs milliseconds where it is forked; what libraries leave behind ends with one."""
MOST_MEMORY = 1_200_000_000
"""Bytes that a worker may have held at its highest before it is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a worker says of one target."""

    answer: Answer | UsageError
    last: bool
    """Whether the worker ends after it."""


def work(connection: Connection, request: Request) -> None:
    """Answer targets until the other side is gone or this process has done its share."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # results are written by the parent alone, whatever native code prints
    for number in range(1, MOST_TARGETS + 1):
        try:
            target: str = connection.recv()
        except EOFError:
            return
        answer = _answer(target, request)
        last = number == MOST_TARGETS or _highest_memory() > MOST_MEMORY
        connection.send(Reply(answer=answer, last=last))
        if last:
            return


def _answer(target: str, request: Request) -> Answer | UsageError:
    question = partial(inspect_request.ask, target, request)
    try:
        return answered(target, question, quiet=request.quiet, verbose=request.views.verbose)
    except UsageError as error:
        return error


def _highest_memory() -> int:
    """Return the most bytes that this process has held so far; 0 where that cannot be asked."""
    if sys.platform == "win32":
        return 0
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else 1024 * highest
