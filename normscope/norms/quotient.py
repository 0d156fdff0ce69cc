"""The parts of a written-out norm: a statistic, the scale made of it, and the division by it."""

from dataclasses import dataclass

from normscope.norms.norm import EpsPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A reduction that could be the scale of a norm, with the value that it reduces."""

    node: int
    values: tuple[int, ...]
    """The value and what it was cast or reshaped from, nearest first."""
    interior: frozenset[int]
    centred: bool
    kind: str
    """`mean` or `sum` of squares, `var`, or `norm`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A value on the way from a statistic to its use."""

    node: int
    power: float
    """2 for a variance, 1 for its root, -1 for the reciprocal root."""
    factor: float = 1.0
    """A number that it was multiplied by: 1/16 where a sum of 16 squares was made their mean."""
    eps: float | None = None
    eps_position: EpsPosition = EpsPosition.NONE
    interior: frozenset[int] = frozenset()
    gain: int | None = None
    """A stored factor that was multiplied onto the scale: x * (w * rsqrt(…))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """A value divided by its own scale: the heart of a written-out norm."""

    statistic: Statistic
    scale: Scale
    input: int
    output: int
    centred: bool
    interior: frozenset[int]
    factor: float = 1.0
    """The number that the value was multiplied by together with its scale."""
    gain: int | None = None
    """A stored factor that came in before the division: w * (x - mean) / (std + eps)."""
