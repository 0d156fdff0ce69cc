"""Processes that answer tasks side by side; one that dies costs the answer to its task only."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Self

from normscope.cli.failures import REPORT_IT
from normscope.cli.interrupts import held_back
from normscope.cli.libraries import set_quiet_environment
from normscope.cli.process_limits import ProcessLimits
from normscope.cli.questions import Question, Reply, Task
from normscope.cli.worker import Begun, work
from normscope.errors import FailureKind, UsageError
from normscope.inspection import Uninspectable

_PATIENCE = 5.0
"""Seconds that a worker has for ending once its pipe is closed."""
_GRACE = 0.5
"""Seconds in which it may end by itself, where it is ended."""
_LOOK = 0.05
"""Seconds between two looks at what workers take, where that is limited."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    number: int = -1
    """The place of its task among all tasks."""
    target: str = ""
    begun: float | None = None
    """When it began with the task, in seconds of the monotonic clock."""


class Workers(Generic[Task, Reply]):
    """At most `jobs` processes, each started when there is a task for it."""

    def __init__(
        self, question: Question[Task, Reply], jobs: int, limits: ProcessLimits | None = None
    ) -> None:
        self._question = question
        self._jobs = jobs
        self._limits = limits or ProcessLimits()
        self._busy: list[_Worker] = []
        self._free: list[_Worker] = []
        self._context: Any = multiprocessing.get_context(_start_method())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """End every worker, also in the middle of its work."""
        workers = (*self._busy, *self._free)
        for worker in workers:
            worker.connection.close()
        for worker in workers:
            _end(worker)
        if error is not None:
            _end_server()

    @property
    def full(self) -> bool:
        """Whether every process that may run has a task."""
        return len(self._busy) >= self._jobs

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._busy)

    def give(self, number: int, task: Task) -> None:
        """Have a worker answer `task`; `number` comes back with the answer."""
        worker = self._free.pop() if self._free else self._started()
        worker.number, worker.target = number, self._question.target_of(task)
        worker.begun = None
        self._busy.append(worker)
        with suppress(OSError):  # it died while it was free: `next_answers` will see that
            worker.connection.send(task)

    def next_answers(self) -> Iterator[tuple[int, Reply | Uninspectable]]:
        """Wait for a worker; yield the answers that are there, and failures for dead workers.

        There may be none yet. Raises `UsageError` where a task means nothing.
        """
        look = _LOOK if self._limits else None
        ready = wait([worker.connection for worker in self._busy], look)
        for worker in tuple(self._busy):
            if worker.connection in ready:
                yield from self._heard(worker)
            else:
                yield from self._watched(worker)

    def _heard(self, worker: _Worker) -> Iterator[tuple[int, Reply | Uninspectable]]:
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            self._busy.remove(worker)
            yield worker.number, _death(worker)
            return
        if isinstance(message, Begun):
            worker.begun = time.monotonic()
            return
        self._busy.remove(worker)
        if message.last:
            worker.connection.close()
        else:
            self._free.append(worker)
        if isinstance(message.answer, UsageError):
            raise message.answer
        yield worker.number, message.answer

    def _watched(self, worker: _Worker) -> Iterator[tuple[int, Uninspectable]]:
        """End a worker that has gone too far; starting it up is not the task's fault."""
        if worker.begun is None or worker.process.pid is None:
            return
        seconds = time.monotonic() - worker.begun
        failure = self._limits.passed(worker.target, worker.process.pid, seconds)
        if failure is not None:
            self._busy.remove(worker)
            _end(worker)
            yield worker.number, failure

    def _started(self) -> _Worker:
        _prepare(quietly=not self._question.verbose)
        here, there = self._context.Pipe()
        process = self._context.Process(target=work, args=(there, self._question), daemon=True)
        process.start()
        there.close()
        return _Worker(process=process, connection=here)


def _start_method() -> str:
    """Fork from a server that has imported torch once, where the platform can."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def _prepare(*, quietly: bool) -> None:
    """Set what new processes inherit, and start the server that forks them; cheap if it runs."""
    set_quiet_environment(verbose=not quietly)
    # Side by side, processes are the threads.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Python would look into the current folder first, where a stranger's torch.py may lie.
    os.environ["PYTHONSAFEPATH"] = "1"
    if _start_method() != "forkserver":
        return
    from multiprocessing import forkserver, resource_tracker

    multiprocessing.set_forkserver_preload(["normscope.cli.worker_imports"])
    with held_back():
        resource_tracker.ensure_running()  # the server starts it otherwise, and unblocks signals
        # An interrupt is for this process, which then ends the others: the server never gets it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end_server() -> None:
    """End the process that forks workers; while it imports torch it would not see our end."""
    if _start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    process = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if process is not None:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _end(worker: _Worker) -> None:
    """Let a worker see that its pipe is closed, and lay down what it is writing; then end it."""
    worker.connection.close()
    worker.process.join(_GRACE)
    worker.process.kill()
    worker.process.join(_PATIENCE)


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
        message=f"its process ended with {_ending(status)} before there was an answer",
        hint=REPORT_IT,
    )


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
