"""Tasks -> their answers by workers, each as soon as it is known."""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Generic

from normscope.cache import code_stays
from normscope.cli.failures import answered
from normscope.cli.process_limits import ProcessLimits
from normscope.cli.questions import Question, Reply, Task, Unknown
from normscope.cli.workers import Workers
from normscope.inspection import Uninspectable


def answered_side_by_side(
    tasks: Sequence[Task], question: Question[Task, Reply], *, jobs: int, limits: ProcessLimits
) -> Generator[tuple[int, Reply | Uninspectable], None, None]:
    """Yield the place of each task and its answer, in the order in which they become known.

    What needs no work is answered here, and equal work is done once. Closing the generator ends
    the workers. Raises `UsageError` for a task that means nothing.
    """
    with code_stays(), Workers(question, jobs, limits) as workers:
        yield from _Desk(tasks, question, workers).answers()


class _Desk(Generic[Task, Reply]):
    """Hands out tasks; one whose like is being worked on waits for that answer."""

    def __init__(
        self,
        tasks: Sequence[Task],
        question: Question[Task, Reply],
        workers: Workers[Task, Reply],
    ) -> None:
        self._tasks = tasks
        self._question = question
        self._workers = workers
        self._due = deque(range(len(tasks)))
        self._next: tuple[int, str | None] | None = None
        """A task that needs work, with what it is equal in, until a worker is free."""
        self._same_as: dict[int, str] = {}
        """What the tasks that are being worked on are equal in."""
        self._waiting: dict[str, list[int]] = {}

    def answers(self) -> Iterator[tuple[int, Reply | Uninspectable]]:
        while self._due or self._next or self._workers.busy:
            if self._next and not self._workers.full:
                self._give(*self._next)
            elif self._due and not self._next:
                yield from self._recalled(self._due.popleft())
            else:
                for number, answer in self._workers.next_answers():
                    self._done(number)
                    yield number, answer

    def _recalled(self, number: int) -> Iterator[tuple[int, Reply | Uninspectable]]:
        task, question = self._tasks[number], self._question
        recall = partial(question.recall, task)
        known = answered(
            question.target_of(task), recall, quiet=question.quiet, verbose=question.verbose
        )
        if not isinstance(known, Unknown):
            yield number, known
        elif known.same in self._waiting:
            self._waiting[known.same].append(number)
        else:
            self._next = number, known.same

    def _give(self, number: int, same: str | None) -> None:
        self._next = None
        if same is not None:
            self._same_as[number] = same
            self._waiting[same] = []
        self._workers.give(number, self._tasks[number])

    def _done(self, number: int) -> None:
        """Ask those that waited again: the answer is kept now, unless the work has failed."""
        same = self._same_as.pop(number, None)
        if same is not None:
            self._due.extendleft(reversed(self._waiting.pop(same)))
