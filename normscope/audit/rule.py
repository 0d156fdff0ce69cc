"""One rule: what it checks, why that matters and how to mend it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from normscope.audit.expectations import Expectation
from normscope.audit.findings import Observation, Severity
from normscope.inspection import Inspection
from normscope.statistics import Statistics


class Need(StrEnum):
    """What a rule has to know of a target; where it is not known the rule is not checked."""

    STRUCTURE = "structure"
    HEADERS = "headers"
    """The headers of the weights."""
    VALUES = "values"
    """The values of the norms' parameters."""
    STATISTICS = "statistics"
    """A run on the policy's input."""
    LOCK = "lock"
    """What a lock file recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """All that is known of one target."""

    inspection: Inspection
    expectation: Expectation = field(default_factory=Expectation)
    statistics: Statistics | None = None
    """None unless the policy gives an input to measure on."""


Check = Callable[[Subject], Iterator[Observation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A code that stays what it is for ever."""

    code: str
    title: str
    """What it finds, as a noun: `block placed otherwise than its stack`."""
    what: str = ""
    """What it checks and how bad which case of it is, in sentences."""
    severity: Severity
    why: str
    """Why it matters, in plain words."""
    mend: str
    """How to mend it."""
    check: Check | None
    """None for what is found by comparing with a lock file."""
    needs: Need = Need.STRUCTURE
    usual: bool = True
    """Whether it is selected unless a policy says otherwise."""
