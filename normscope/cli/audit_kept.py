"""Audited targets -> what is held of them until the report is written: a run may have thousands."""

from dataclasses import replace
from typing import TypeVar

from normscope.audit.report import AuditedTarget

Value = TypeVar("Value")


class Kept:
    """Holds answers by their number; what many of them have alike is held once."""

    def __init__(self, *, facts: bool) -> None:
        self._facts = facts
        """Whether the facts are wanted again: lines of jsonl have been written with them."""
        self._answers: dict[int, AuditedTarget] = {}
        self._alike: dict[object, object] = {}

    def take(self, number: int, answer: AuditedTarget) -> None:
        """Hold one more."""
        self._answers[number] = replace(
            answer,
            family=self._once(answer.family),
            checked=self._once(answer.checked),
            unchecked=self._once(answer.unchecked),
            facts=answer.facts if self._facts else None,
        )

    def in_order(self) -> tuple[AuditedTarget, ...]:
        """Return what was taken, by number."""
        return tuple(self._answers[number] for number in sorted(self._answers))

    def _once(self, value: Value) -> Value:
        known = self._alike.setdefault(value, value)
        return known if isinstance(known, type(value)) else value
