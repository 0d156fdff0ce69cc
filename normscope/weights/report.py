"""What a checkpoint's files say of the parameters of its norms; knows no torch."""

from dataclasses import dataclass
from enum import StrEnum


class WeightsLevel(StrEnum):
    """How much of the weights is read."""

    NONE = "none"
    HEADERS = "headers"
    NORMS = "norms"


class ParameterProblem(StrEnum):
    """What is wrong with a stored norm parameter."""

    MISSING = "missing"
    """No stored tensor becomes it: transformers would fill it with fresh values."""
    SHAPE = "other_shape"
    """The stored tensor has another shape than the module's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedParameter:
    """One parameter of a norm, as the module names it."""

    name: str
    is_gain: bool = True
    """False for a bias."""
    offset: float = 0.0
    """1 where the norm multiplies by 1 + w."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFacts:
    """The values of one tensor, as the file holds them unless said otherwise."""

    count: int
    mean: float
    spread: float
    """Standard deviation over the channels."""
    minimum: float
    maximum: float
    non_finite: int
    """How many values are NaN or infinite; the other figures leave them out."""
    dead: int
    """Channels whose effective value is zero, or below a millionth of the median magnitude."""
    outliers: int
    """Channels whose effective value is over 10 times the median magnitude."""
    largest_channel: int | None
    """Where the largest effective magnitude stands."""
    offset: float
    """What makes a stored value effective: 1 where it is w and the norm multiplies by 1 + w."""
    lost_in_bfloat16: int
    """Channels with w other than 0 whose 1 + w is 1 in bfloat16; 0 for a plain gain."""
    bfloat16_error: float
    """Largest relative error of an effective value computed in bfloat16."""

    @property
    def effective_mean(self) -> float:
        """Mean of what the norm multiplies by."""
        return self.mean + self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredParameter:
    """One parameter of a norm beside the stored tensor that becomes it."""

    name: str
    is_gain: bool
    """False for a bias."""
    stored_name: str | None
    """The tensor's name in the file; None where it is missing."""
    file: str | None
    dtype: str | None
    shape: tuple[int, ...] | None
    model_shape: tuple[int, ...] | None = None
    """Of the module's own parameter."""
    problem: ParameterProblem | None = None
    converted: bool = False
    """Whether transformers computes it from the stored tensor instead of copying it."""
    added: float = 0.0
    """How much more than the parameter the file holds: 1 where it holds 1 + w for w."""
    tied_to: str | None = None
    """The parameter under whose name it is stored, where two are one tensor."""
    values: ValueFacts | None = None
    """None unless the values were read."""

    @property
    def renamed(self) -> bool:
        """Whether the file has it under another name, and not under that of a tied one."""
        return self.stored_name not in (None, self.name) and self.tied_to is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsReport:
    """The norm parameters of one checkpoint, as stored."""

    level: WeightsLevel
    container: str
    """`safetensors`, `pickled` or `gguf`."""
    files: int
    file_bytes: int
    """Size of all weight files."""
    bytes_read: int
    """How much of them was read: headers, and the norms' own values."""
    parameters: tuple[StoredParameter, ...]
    unexpected: tuple[str, ...] = ()
    """Stored tensors that the module does not read."""
    quantized: int = 0
    """Those of them that belong to quantized layers: packed values and scales; not listed."""
    unread_norms: tuple[str, ...] = ()
    """Those of `unexpected` that are stored as a norm's parameters are."""
    stated_eps: tuple[float, ...] = ()
    """The eps of norms that the files' own metadata names; most formats name none."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference:
    """Two tensors of one shape, channel by channel."""

    left: str
    right: str
    """Names of the two parameters."""
    largest: float
    """Largest absolute difference of effective values (w, or 1 + w)."""
    relative: float
    """That of the whole tensors: ‖a - b‖ / max(‖a‖, ‖b‖), 0 for equal ones."""
    channel: int | None
    """Where the largest difference stands; None where nothing differs."""
    both_nan: int = 0
    """Channels that are NaN on both sides, which count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterReport:
    """What an adapter's file holds of its base model's norms."""

    base: str
    """The model that it was trained on, as the adapter names it."""
    trains: tuple[str, ...]
    """Norm parameters of the base model that it brings values for."""
    tensors: int
    """How many tensors it holds in all."""
