"""Statistics: what flowed through each norm, token by token; knows no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from normscope.inspection import ModelFacts, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The values at one point of a norm, one entry a token (or a row, where rows are no tokens).

    Taken over the axes that the norm itself uses, of the values that really flowed, accumulated in
    float32 or wider.
    """

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    """Population variance: the mean squared distance from the mean."""
    peak: tuple[float, ...]
    """The largest absolute value."""
    peak_channel: tuple[int, ...]
    """Where the peak stands: an index into the normalized axes, flattened; a channel's number
    where groups or channels are normalized alone."""
    magnitude: float | None = None
    """Median absolute value of the whole tensor; only taken where a peak is over 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsSummary:
    """One quantity over all tokens."""

    median: float
    p99: float
    maximum: float
    at_token: int | None
    """Index of the token (or row) that has the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One position of one input sequence that was not padding."""

    sequence: int
    position: int
    """Counted from the sequence's first token that is not padding."""
    id: int | None
    """None where the input was no token id."""
    text: str | None
    """None without a tokenizer."""
    special: bool
    stream: str = ""
    """`encoder` or `decoder` where a model has tokens on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormStatistics:
    """One call of one norm: what went in and what came out."""

    name: str
    call: int
    role: Role
    kind: str
    block: str | None = None
    """Path of the block that it stands in."""
    eps: float | None = None
    eps_position: str = "none"
    statistics_dtype: str | None = None
    stream: str = ""
    """Which tokens the entries belong to: the `stream` of those tokens."""
    rows_per_token: int | None = 1
    """Rows that were averaged for each token; None where the rows are no tokens."""
    rows: str | None = None
    """What the rows are where they are no tokens: `64 channels`."""
    before: Moments | None = None
    after: Moments | None = None
    every_before: Moments | None = None
    """Each row of a norm with several rows a token, token by token; else None."""
    every_after: Moments | None = None
    problem: str | None = None
    """Why there are no values."""

    def normalized(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Return mean and variance between the scaling and the gain, from the input's own.

        None where eps stands elsewhere than inside the root, where several rows were averaged, or
        where the scale is no root of a mean.
        """
        if self.before is None or self.rows_per_token != 1 or self.eps_position == "clamp":
            return None
        if self.kind == "LayerNorm":
            return self._layer_normalized(self.before)
        return self._rms_normalized(self.before) if self.kind == "RMSNorm" else None

    def _layer_normalized(self, before: Moments) -> tuple[tuple[float, ...], tuple[float, ...]]:
        pairs = [_over(value, self._scale(value)) for value in before.variance]
        return (0.0,) * len(pairs), tuple(pairs)

    def _rms_normalized(self, before: Moments) -> tuple[tuple[float, ...], tuple[float, ...]]:
        rows = list(zip(before.mean, before.variance, strict=True))
        scales = [self._scale(variance + mean * mean) for mean, variance in rows]
        means = [
            _over(row[0], math.sqrt(scale) if scale >= 0 else math.nan)
            for row, scale in zip(rows, scales, strict=True)
        ]
        variances = [_over(row[1], scale) for row, scale in zip(rows, scales, strict=True)]
        return tuple(means), tuple(variances)

    def _scale(self, square: float) -> float:
        """Return the squared denominator."""
        eps = self.eps or 0.0
        if self.eps_position == "outside":
            return (math.sqrt(square) + eps) ** 2 if square >= 0 else math.nan
        return square + (eps if self.eps_position == "inside" else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """What was measured on."""

    sequences: int
    tokens: int
    padding: int
    special: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFinding:
    """One thing that stands out; `code` is a rule of `normscope rule`."""

    code: str
    severity: str
    where: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The answer of `normscope stats` for one target."""

    target: str
    versions: Mapping[str, str]
    model: ModelFacts
    dtype: str
    device: str
    input: InputFacts
    tokens: tuple[Token, ...]
    norms: tuple[NormStatistics, ...]
    findings: tuple[StatisticsFinding, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def tokens_of(self, norm: NormStatistics) -> tuple[Token, ...]:
        """Return the tokens that a norm's entries belong to, in their order."""
        if norm.rows_per_token is None:
            return ()
        return tuple(token for token in self.tokens if token.stream == norm.stream)


def summarize(values: Sequence[float]) -> MomentsSummary:
    """Return median, 99th percentile (linear between ranks), maximum and where it stands.

    NaN counts as greater than every number, so that it is never hidden.
    """
    if not values:
        return MomentsSummary(median=math.nan, p99=math.nan, maximum=math.nan, at_token=None)
    ordered = sorted(values, key=_nan_last)
    return MomentsSummary(
        median=_quantile(ordered, 0.5),
        p99=_quantile(ordered, 0.99),
        maximum=ordered[-1],
        at_token=max(range(len(values)), key=lambda index: (_nan_last(values[index]), -index)),
    )


def greatest(values: Sequence[float]) -> float:
    """Return the greatest of at least one value, NaN where one of them is."""
    return max(values, key=_nan_last)


def _nan_last(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


def _quantile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    below, above = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
    if below == above or position == low:
        return below
    return below + (above - below) * (position - low)


def _over(value: float, divisor: float) -> float:
    return value / divisor if divisor else math.nan
