"""What a normalization is: the facts of one call, read off the graph."""

from dataclasses import dataclass
from enum import StrEnum


class NormKind(StrEnum):
    """Which scale divides the value, and whether a mean is subtracted first."""

    LAYER = "LayerNorm"
    RMS = "RMSNorm"
    L2 = "L2Norm"
    GROUP = "GroupNorm"
    BATCH = "BatchNorm"
    INSTANCE = "InstanceNorm"


class EpsPosition(StrEnum):
    """Where eps enters the denominator."""

    INSIDE = "inside"
    """sqrt(var + eps)"""
    OUTSIDE = "outside"
    """sqrt(var) + eps"""
    CLAMP = "clamp"
    """max(scale, eps)"""
    NONE = "none"


class Gain(StrEnum):
    """How the learned scale enters; `w` is the parameter as stored."""

    NONE = "none"
    W = "w"
    ONE_PLUS_W = "1+w"
    OTHER = "other"
    """A gain computed from parameters in another way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """One call of one normalization.

    `input`, `normalized` and `output` are node indices of the graph that it was found in: the
    value that goes in, that value divided by its scale, and the value after gain and bias.
    """

    kind: NormKind
    input: int
    normalized: int | None
    """None where one fused operation also applies gain and bias."""
    output: int
    interior: frozenset[int]
    """The nodes of the written-out arithmetic, without `input`, with `output`."""
    axes: tuple[int, ...]
    """The axes that supply the statistics; negative ones count from the last."""
    shape: tuple[int, ...]
    """Sizes of the feature axes that gain and statistics share: [768]; channels of a BatchNorm."""
    groups: int | None = None
    eps: float | None = None
    eps_position: EpsPosition = EpsPosition.NONE
    factor: float = 1.0
    """A number that the scaled value is multiplied by before the gain."""
    gain: Gain = Gain.NONE
    bias: bool = False
    weight: str | None = None
    """Name of the gain's tensor in the checkpoint."""
    bias_name: str | None = None
    statistics_dtype: str = "float32"
    squares_dtype: str | None = None
    """The dtype in which values are squared, where that is not the statistics' own."""
    gain_dtype: str | None = None
    """The dtype in which the gain is multiplied; None without a gain."""
    module: str | None = None
    """Path of the module that is this norm and nothing else, or None."""
    owner: str = ""
    """Path of the innermost module that ran it."""
    owner_call: int = 0
    """Index into `Graph.calls` of that module's run."""
    name: str = ""
    """`module`, or the owner's path and what ran in it: `h.0.attn:RMSNorm`, `…:RMSNorm.1`."""
    call: int = 0
    """0 for the first run under this name, 1 for the second, …"""
    frozen_statistics: bool = False
    """Normalizes by stored statistics (a BatchNorm in eval mode)."""
