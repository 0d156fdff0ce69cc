"""Processes that answer targets side by side; one that dies costs the answer to its target only."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self

from normscope.cli.failures import REPORT_IT
from normscope.cli.inspect_request import Request
from normscope.cli.libraries import set_quiet_environment
from normscope.cli.worker import Reply, work
from normscope.errors import FailureKind, UsageError
from normscope.inspection import Answer, Uninspectable

_PATIENCE = 5.0
"""Seconds that a worker has for ending once its pipe is closed."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    number: int
    """The place of its target among all targets."""
    target: str


class Workers:
    """At most `jobs` processes, each started when there is a target for it."""

    def __init__(self, request: Request, jobs: int) -> None:
        self._request = request
        self._jobs = jobs
        self._busy: list[_Worker] = []
        self._free: list[_Worker] = []
        self._context: Any = multiprocessing.get_context(_start_method())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End every worker, also in the middle of its work."""
        for worker in (*self._busy, *self._free):
            worker.process.kill()
            worker.connection.close()

    @property
    def full(self) -> bool:
        """Whether every process that may run has a target."""
        return len(self._busy) >= self._jobs

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._busy)

    def give(self, number: int, target: str) -> None:
        """Have a worker answer `target`; `number` comes back with the answer."""
        worker = self._free.pop() if self._free else self._started()
        worker.number, worker.target = number, target
        self._busy.append(worker)
        with suppress(OSError):  # it died while it was free: `next_answers` will see that
            worker.connection.send(target)

    def next_answers(self) -> Iterator[tuple[int, Answer]]:
        """Wait for a worker; yield the answers that are there, and failures for dead workers.

        Raises `UsageError` where a target means nothing.
        """
        ready = wait([worker.connection for worker in self._busy])
        for worker in [worker for worker in self._busy if worker.connection in ready]:
            self._busy.remove(worker)
            yield worker.number, self._answer_of(worker)

    def _answer_of(self, worker: _Worker) -> Answer:
        try:
            reply: Reply = worker.connection.recv()
        except (EOFError, OSError):
            return _death(worker)
        if reply.last:
            worker.connection.close()
        else:
            self._free.append(worker)
        if isinstance(reply.answer, UsageError):
            raise reply.answer
        return reply.answer

    def _started(self) -> _Worker:
        _prepare(quietly=not self._request.views.verbose)
        here, there = self._context.Pipe()
        process = self._context.Process(target=work, args=(there, self._request), daemon=True)
        process.start()
        there.close()
        return _Worker(process=process, connection=here, number=-1, target="")


def _start_method() -> str:
    """Fork from a server that has imported torch once, where the platform can."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def _prepare(*, quietly: bool) -> None:
    """Set what new processes inherit, and start the server that forks them; cheap if it runs."""
    if quietly:
        set_quiet_environment()
    # Side by side, processes are the threads.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if _start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    multiprocessing.set_forkserver_preload(["normscope.cli.worker_imports"])
    # An interrupt is for this process, which then ends the others; the server inherits that.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, handler)


def _death(worker: _Worker) -> Uninspectable:
    worker.process.join(_PATIENCE)
    worker.connection.close()
    status = worker.process.exitcode
    if status == -signal.SIGKILL:
        return Uninspectable(
            target=worker.target,
            kind=FailureKind.OUT_OF_MEMORY,
            message="its process was killed, as happens when the memory of the machine runs out",
            hint="try again with fewer --jobs",
        )
    return Uninspectable(
        target=worker.target,
        kind=FailureKind.INTERNAL,
        message=f"its process ended with {_end(status)} before there was an answer",
        hint=REPORT_IT,
    )


def _end(status: int | None) -> str:
    if status is None or status >= 0:
        return f"status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
