"""Some sequences of a run -> the rows of every norm for their tokens, as arrays; knows no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from normscope.activations.subject import Subject
from normscope.statistics import NormStatistics, Token

MOST_ROWS = 1 << 19
"""Norms times tokens that are held one by one; about 150 MB. Beyond, a run is summarized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The moments at one point of one norm, one entry a row, in the order of the input."""

    mean: np.ndarray
    variance: np.ndarray
    peak: np.ndarray
    channel: np.ndarray

    def __len__(self) -> int:
        return len(self.mean)

    def taken(self, places: np.ndarray) -> "Columns":
        """Return the entries at some places, in that order."""
        return Columns(
            mean=self.mean[places],
            variance=self.variance[places],
            peak=self.peak[places],
            channel=self.channel[places],
        )


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the entries of several parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Columns(
        mean=np.concatenate([part.mean for part in parts]),
        variance=np.concatenate([part.variance for part in parts]),
        peak=np.concatenate([part.peak for part in parts]),
        channel=np.concatenate([part.channel for part in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledColumns:
    """The moments between the scaling and the gain of one norm, one entry a row."""

    mean: np.ndarray
    variance: np.ndarray

    def taken(self, places: np.ndarray) -> "ScaledColumns":
        """Return the entries at some places, in that order."""
        return ScaledColumns(mean=self.mean[places], variance=self.variance[places])


@dataclass(frozen=True, slots=True, kw_only=True)
class NormRows:
    """One norm's part of a chunk."""

    before: Columns
    after: Columns
    every_before: Columns | None = None
    """Each row of a norm with several rows a token, token by token; else None."""
    every_after: Columns | None = None
    scaled: ScaledColumns | None = None
    """Of each single row, where rows are saved and it follows from what goes in."""

    def single_rows(self) -> tuple[Columns, Columns]:
        """Return the rows before and after, each by itself."""
        return self.every_before or self.before, self.every_after or self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Whole sequences of a run, and what was measured on them.

    Chunks come in the order of the input, whatever was run together with what.
    """

    subject: Subject
    norms: tuple[NormStatistics, ...]
    """Every norm of the run, without its moments."""
    rows: tuple[NormRows | None, ...]
    """As many; None where a norm has no rows here."""
    tokens: tuple[Token, ...]

    def tokens_of(self, norm: NormStatistics) -> tuple[Token, ...]:
        """Return the tokens that a norm's entries belong to, in their order."""
        if norm.rows_per_token is None:
            return ()
        return tuple(token for token in self.tokens if token.stream == norm.stream)


class RowSink(Protocol):
    """Takes the rows of a run as they come."""

    def write(self, chunk: Chunk) -> None:
        """Take the next chunk."""


class Follower(Protocol):
    """Is told how far a run has come."""

    def measured(self, sequences: int, tokens: int) -> None:
        """Take note of so many more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """What becomes of the rows of a run while it goes on."""

    sink: RowSink | None = None
    follower: Follower | None = None
    most_rows: int = field(default_factory=lambda: MOST_ROWS)
    """Norms times tokens that are held."""
    every_token: bool = False
    """Whether a run that is too large to hold is refused, not summarized."""
