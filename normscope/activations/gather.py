"""Chunks -> the norms of a run with their moments: every row, or beyond a limit their summary."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from normscope.activations.chunks import Chunk, Columns, NormRows, Reporting, joined
from normscope.activations.digest import NormDigest
from normscope.activations.quantiles import QUANTILE_ERROR
from normscope.errors import UsageError
from normscope.statistics import LeftOut, Moments, NormStatistics, Token

Magnitudes = tuple[float | None, float | None]
"""Median absolute values before and after."""


@dataclass(slots=True)
class Gathered:
    """What is known of the rows so far."""

    reporting: Reporting
    _chunks: list[Chunk] = field(default_factory=list)
    _held: int = 0
    _digests: list[NormDigest] | None = None

    def add(self, chunk: Chunk) -> None:
        """Take a chunk; raises `UsageError` where every token is needed and there are too many."""
        if self.reporting.sink is not None:
            self.reporting.sink.write(chunk)
        if self._digests is not None:
            self._fold(chunk, self._digests)
            return
        self._chunks.append(chunk)
        self._held += _count(chunk)
        if self._held > self.reporting.most_rows:
            self._summarize(chunk)

    def _summarize(self, chunk: Chunk) -> None:
        if self.reporting.every_token:
            raise UsageError(
                f"there are over {self.reporting.most_rows:,} rows (norms times tokens), "
                "too many to show each token",
                "take --view summary, fewer texts, or fewer norms with --norm",
            )
        self._digests = [NormDigest() for _ in chunk.norms]
        for held in self._chunks:
            self._fold(held, self._digests)
        self._chunks.clear()

    def _fold(self, chunk: Chunk, digests: Sequence[NormDigest]) -> None:
        tokens = {norm.stream: chunk.tokens_of(norm) for norm in chunk.norms if norm.rows_per_token}
        for norm, rows, digest in zip(chunk.norms, chunk.rows, digests, strict=True):
            if rows is not None and len(rows.before):
                digest.add(rows, tokens[norm.stream] if norm.rows_per_token else ())

    def left_out(self) -> LeftOut | None:
        """Return what a summary lacks; None where every row is held."""
        if self._digests is None:
            return None
        return LeftOut(over=self.reporting.most_rows, quantile_error=QUANTILE_ERROR)

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, one stream after the other; none where they are not held."""
        tokens = [token for chunk in self._chunks for token in chunk.tokens]
        streams = dict.fromkeys(token.stream for token in tokens)
        return tuple(token for stream in streams for token in tokens if token.stream == stream)

    def as_statistics(
        self,
        described: Sequence[NormStatistics],
        magnitudes: Sequence[Magnitudes],
        merged: Sequence[NormRows | None],
    ) -> tuple[NormStatistics, ...]:
        """Return the norms with what was gathered of them; none has moments beside a problem.

        `merged` has the rows that came in no chunk, because they grow until the end.
        """
        columns = zip(described, magnitudes, merged, strict=True)
        return tuple(
            norm if norm.problem is not None else self._with_moments(index, norm, known, rows)
            for index, (norm, known, rows) in enumerate(columns)
        )

    def _with_moments(
        self, index: int, norm: NormStatistics, known: Magnitudes, merged: NormRows | None
    ) -> NormStatistics:
        if merged is not None:
            return _holding(norm, [merged], known)
        if self._digests is not None:
            return self._digests[index].as_statistics(norm, known)
        parts = [rows for chunk in self._chunks if (rows := chunk.rows[index]) is not None]
        return _holding(norm, parts, known)


def _holding(norm: NormStatistics, parts: Sequence[NormRows], known: Magnitudes) -> NormStatistics:
    """Return the norm with every row."""
    if not any(len(part.before) for part in parts):
        return norm
    return replace(
        norm,
        before=_moments([part.before for part in parts], known[0]),
        after=_moments([part.after for part in parts], known[1]),
        every_before=_moments([part.every_before for part in parts]),
        every_after=_moments([part.every_after for part in parts]),
    )


def _count(chunk: Chunk) -> int:
    return sum(_rows_of(rows) for rows in chunk.rows if rows is not None)


def _rows_of(rows: NormRows) -> int:
    return len(rows.single_rows()[0])


def _moments(parts: Sequence[Columns | None], magnitude: float | None = None) -> Moments | None:
    held = [part for part in parts if part is not None]
    if not held:
        return None
    columns = joined(held)
    return Moments(
        mean=tuple(columns.mean.tolist()),
        variance=tuple(columns.variance.tolist()),
        peak=tuple(columns.peak.tolist()),
        peak_channel=tuple(columns.channel.tolist()),
        magnitude=magnitude,
    )
