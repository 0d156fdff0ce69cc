"""A policy: which targets there are, what is expected of them and which rules they must pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from normscope.audit.expectations import Expectation
from normscope.statistics import DEFAULT_THRESHOLDS, Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a file."""

    file: str
    """As it was named, with `/` between folders."""
    line: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPattern:
    """A target or a glob of paths, as the policy writes it."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What holds for some targets of a family instead."""

    targets: tuple[TargetPattern, ...]
    expect: Expectation = field(default_factory=Expectation)
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    budget: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Targets that are alike."""

    name: str
    place: Place
    targets: tuple[TargetPattern, ...]
    expect: Expectation = field(default_factory=Expectation)
    select: tuple[str, ...] | None = None
    """Codes or prefixes; None for the usual rules."""
    ignore: tuple[str, ...] = ()
    budget: Mapping[str, int] = field(default_factory=dict)
    """Code of an NS4xx rule -> how many findings of a target it may have."""
    overrides: tuple[Override, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What the NS4xx rules are measured on: the policy's `[stats]`."""

    input: tuple[str, ...]
    max_length: int | None = None
    verify: bool = False
    thresholds: Thresholds = DEFAULT_THRESHOLDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy file."""

    file: str
    directory: Path
    """Where its paths and globs start."""
    families: tuple[Family, ...]
    select: tuple[str, ...] | None = None
    """For families that select nothing themselves."""
    ignore: tuple[str, ...] = ()
    """For all families, beside their own."""
    measuring: Measuring | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One target, and all that it is held against."""

    target: str
    """As findings name it: the same on every machine."""
    opened: str
    """What is opened: the target seen from here."""
    family: str = ""
    """"" where no family of the policy has it."""
    place: Place | None = None
    """The line of the policy that names it."""
    expect: Expectation = field(default_factory=Expectation)
    rules: tuple[str, ...] = ()
    """Codes of the rules to check, sorted."""
    budget: Mapping[str, int] = field(default_factory=dict)
