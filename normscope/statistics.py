"""Statistics: what flowed through each norm, token by token; knows no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from normscope.inspection import ModelFacts, Role


class Quantity(StrEnum):
    """What is summarized over the tokens."""

    MEAN = "mean"
    VARIANCE = "variance"
    PEAK = "peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsSummary:
    """One quantity over all tokens."""

    median: float
    p99: float
    maximum: float
    at_token: int | None
    """Index of the entry of the token (or row) that has the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The values of all tokens taken together."""

    count: int
    """How many tokens (or rows)."""
    mean: float
    variance: float
    """Mean of the variances plus variance of the means (Chan, Golub and LeVeque 1979)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSummary:
    """What is known of all entries at one point of a norm, where not all of them are held."""

    mean: MomentsSummary
    variance: MomentsSummary
    peak: MomentsSummary
    pooled: Pooled


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
    whole: PointSummary | None = None
    """Of all entries, where only those that stand out are held here."""

    def summary(self, quantity: Quantity = Quantity.VARIANCE) -> MomentsSummary:
        """Return median, 99th percentile, maximum and its entry, of all tokens."""
        if quantity is Quantity.MEAN:
            return self.whole.mean if self.whole is not None else summarize(self.mean)
        if quantity is Quantity.PEAK:
            return self.whole.peak if self.whole is not None else summarize(self.peak)
        return self.whole.variance if self.whole is not None else summarize(self.variance)

    def pooled(self) -> Pooled:
        """Return the moments of the values of all tokens together."""
        return self.whole.pooled if self.whole is not None else pool(self.mean, self.variance)


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
class KeptEntries:
    """Which entries of a norm are held, where there were too many to hold all."""

    places: tuple[int, ...]
    """Number of each among all entries of the norm, ascending."""
    tokens: tuple[Token, ...]
    """The token of each; empty where the rows are no tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """That a run was too large to hold every row, and what that costs."""

    over: int
    """Most rows (norms times tokens) that are held."""
    quantile_error: float
    """Largest relative error of a median or a 99th percentile; all else is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """The point between the scaling and the gain, one entry where `before` has one."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]


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
    kept: KeptEntries | None = None
    """Which entries the points hold, where not all."""
    row_length: int | None = None
    """How many values share one scale."""
    normalized: Normalized | None = None
    """Between the scaling and gain and bias; None where that does not follow from the input."""
    error: float | None = None
    """Largest difference of the real output from the formula in float64, over the largest value of
    its row; None where it was not recomputed."""
    output_dtype: str | None = None
    """Of the output that was compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """What was measured on."""

    sequences: int
    tokens: int
    padding: int
    special: int
    special_left_out: bool = False
    """Whether the special ones are not among the tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFinding:
    """One thing that stands out; `code` is a rule of `normscope rule`."""

    code: str
    severity: str
    where: str
    """Name of the norm."""
    message: str
    token: Token | None = None
    """Where it is worst; None where rows are no tokens."""
    channel: int | None = None
    first: str | None = None
    """Path of the first block (or the norm, outside of blocks) that shows it."""
    last: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is a finding."""

    massive: float = 100.0
    """Smallest value that can be a massive activation (NS401)."""
    massive_share: float = 1000.0
    """Times the median magnitude of its tensor (NS401)."""
    massive_channels: int = 3
    """In more channels than these, large values are no outliers (NS401)."""
    sink: float = 100.0
    """Times the median token's variance (NS402)."""
    eps_share: float = 0.01
    """Part of the denominator that is eps (NS404)."""
    error: float | None = None
    """Largest error of a recomputed output (NS405); None for that of its dtype."""


DEFAULT_THRESHOLDS = Thresholds()


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
    verified: bool = False
    """Whether each norm's output was recomputed."""
    warnings: tuple[str, ...] = field(default=())
    left_out: LeftOut | None = None
    """Set where the tokens are only summarized: `tokens` is empty then."""
    pattern: str | None = None
    """Which norms were asked for by name; None for all."""

    def tokens_of(self, norm: NormStatistics) -> tuple[Token, ...]:
        """Return the tokens that a norm's entries belong to, in their order."""
        if norm.rows_per_token is None:
            return ()
        if norm.kept is not None:
            return norm.kept.tokens
        return tuple(token for token in self.tokens if token.stream == norm.stream)


def summarize(values: Sequence[float]) -> MomentsSummary:
    """Return median, 99th percentile (linear between ranks), maximum and where it stands.

    NaN counts as greater than every number, so that it is never hidden.
    """
    if not values:
        return MomentsSummary(median=math.nan, p99=math.nan, maximum=math.nan, at_token=None)
    numbers = sorted(value for value in values if value == value)  # all but NaN
    ordered = numbers + [math.nan] * (len(values) - len(numbers))
    wrong = len(numbers) < len(values)
    at = next(n for n, value in enumerate(values) if value != value) if wrong else None
    return MomentsSummary(
        median=_quantile(ordered, 0.5),
        p99=_quantile(ordered, 0.99),
        maximum=ordered[-1],
        at_token=values.index(ordered[-1]) if at is None else at,
    )


def pool(mean: Sequence[float], variance: Sequence[float]) -> Pooled:
    """Return the moments of the values of all rows together; the rows are equally long."""
    count = len(mean)
    if not count or not all(map(math.isfinite, mean)):
        return Pooled(count=count, mean=math.nan, variance=math.nan)
    center = math.fsum(mean) / count
    within = math.fsum(variance) / count if all(map(math.isfinite, variance)) else math.nan
    between = math.fsum((value - center) ** 2 for value in mean) / count
    return Pooled(count=count, mean=center, variance=within + between)


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
