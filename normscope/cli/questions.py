"""One question that is put to many tasks, here or in other processes."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Task_contra = TypeVar("Task_contra", contravariant=True)
Reply = TypeVar("Reply")
Reply_co = TypeVar("Reply_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A task whose answer takes work."""

    same: str | None = None
    """Tasks that are equal in it are one piece of work: the others wait for the first."""


class Question(Protocol[Task_contra, Reply_co]):
    """What is asked of every task; it can be pickled, and so can tasks and replies."""

    @property
    def quiet(self) -> bool:
        """Whether nothing that libraries print is shown."""

    @property
    def verbose(self) -> bool:
        """Whether their warnings, and the tracebacks of failures, are shown."""

    def target_of(self, task: Task_contra) -> str:
        """Return what a failure calls the task."""

    def ask(self, task: Task_contra) -> Reply_co:
        """Answer one task; brings in torch where that is needed."""

    def recall(self, task: Task_contra) -> Reply_co | Unknown:
        """Return what is known without torch."""
