"""What is told of two models side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.inspection import Inspection, ModelFacts, NormReport
from normscope.weights.report import ValueDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that two models do not share."""

    where: str
    """Path or name in the first model; in the second where the first has nothing there."""
    stack: str | None
    """Path of the stack that it stands in, in the model that `where` is of."""
    index: int | None
    """Index of the block in that stack."""
    fact: str
    left: str
    right: str
    other: str | None = None
    """Name in the second model, where it is another one."""
    of_weights: bool = False
    """Whether the files differ in it: a tensor that one side lacks, or has in another shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormPair:
    """Two norm calls that stand at the same place in the dataflow."""

    left: NormReport
    right: NormReport

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Names of the gain and of the bias that both have."""
        both = (
            (self.left.weight, self.right.weight),
            (self.left.bias_name, self.right.bias_name),
        )
        return tuple((one, other) for one, other in both if one is not None and other is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the two sides."""

    target: str
    model: ModelFacts
    versions: Mapping[str, str]

    @classmethod
    def of(cls, inspection: Inspection) -> "Compared":
        """Return what names a model."""
        return cls(target=inspection.target, model=inspection.model, versions=inspection.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The answer of `normscope diff`."""

    left: Compared
    right: Compared
    differences: tuple[Difference, ...]
    pairs: tuple[NormPair, ...]
    """Norm calls that were matched."""
    values: tuple[ValueDifference, ...] | None = None
    """Of the matched norms' gains and biases; None where one side has no weights."""
    tolerance: float = 0.0
    """Relative difference of values up to which they count as equal."""

    @property
    def parameter_pairs(self) -> tuple[tuple[str, str], ...]:
        """Names of the gains and biases of matched norms, each pair once."""
        return tuple(dict.fromkeys(names for pair in self.pairs for names in pair.parameters))

    @property
    def unequal_values(self) -> tuple[ValueDifference, ...]:
        """The parameters that differ by more than the tolerance."""
        return tuple(value for value in self.values or () if not value.relative <= self.tolerance)

    @property
    def nan_values(self) -> tuple[ValueDifference, ...]:
        """The parameters that are NaN at the same places on both sides, equal as they may be."""
        return tuple(value for value in self.values or () if value.both_nan)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences and not self.unequal_values
