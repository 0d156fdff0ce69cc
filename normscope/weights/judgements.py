"""WeightsReport -> what is wrong among a checkpoint's norm parameters, one fact each; no torch."""

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from normscope.weights.report import ParameterProblem, StoredParameter, ValueFacts, WeightsReport

_NEAR = 0.1
"""How far from a whole number the median of the gains' means may lie to count as centred there."""
_WHOLE = ("int", "uint", "bool")
"""How the types begin that hold no fractions."""
_SHIFTS = {
    (1.0, 1): "and the norms add 1 to them; perhaps they hold it already",
    (1.0, -1): "and the norms add 1 to them; perhaps 1 was taken off twice",
    (0.0, 1): "and the norms multiply by them as they are; perhaps 1 was added twice",
    (0.0, -1): "and the norms multiply by them as they are; perhaps an offset of 1 is missing",
}
"""What a norm adds to its gains, and how far they lie from their usual centre -> the likely why."""
_OWN_NAMES = frozenset({"gguf"})
"""Containers whose format names every tensor in its own way."""


class StoredProblemKind(StrEnum):
    """What can be wrong with a stored norm parameter."""

    MISSING = "missing"
    UNEXPECTED = "unexpected"
    SHAPE = "shape"
    OFFSET = "offset"
    """Gains centred where a gain of their form is not: 1 was added or taken off twice, or never."""
    WHOLE_NUMBERS = "whole_numbers"
    """Stored in a type that has no fractions."""
    NON_FINITE = "non_finite"
    ALL_ZERO = "all_zero"
    """A gain that multiplies every channel by zero."""
    CONSTANT = "constant"
    """One value in all channels, mostly as before any training; an all-zero bias is one too."""
    DEAD_CHANNELS = "dead_channels"
    OUTLIERS = "outliers"
    RENAMED = "renamed"
    """Only read because the library renames it on loading."""
    EPS = "eps"
    """The file names an eps that no norm runs with; only `differing_eps` tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProblem:
    """One thing that is wrong with one stored parameter."""

    kind: StoredProblemKind
    name: str
    """The parameter, or the stored tensor of an `unexpected` one; "" for all gains together."""
    message: str
    """What is wrong, in words that name no parameter: equal ones can be told together."""
    found: str
    expected: str


def stored_problems(report: WeightsReport) -> Iterator[StoredProblem]:
    """Yield what is wrong, by kind and in the model's order; needs values for all from `offset` on.

    A parameter can have several problems. What a problem is worth is for the reader to say.
    """
    yield from _missing(report.parameters)
    yield from _misshapen(report.parameters)
    if not report.quantized:  # a quantized layer's tensors mean something else than their numbers
        yield from _whole_numbers(report.parameters)
    yield from _unexpected(report.unexpected)
    if report.container not in _OWN_NAMES:
        yield from _renamed(report.parameters)
    yield from _offsets(report.parameters)
    for judge in (_non_finite, _all_zero, _constant, _dead, _outliers):
        for item in report.parameters:
            if item.values is not None:
                yield from judge(item, item.values)


def differing_eps(
    report: WeightsReport, eps_of_norms: Iterable[float | None]
) -> Iterator[StoredProblem]:
    """Yield each eps that the file itself names and that none of the norms runs with."""
    known = {_single(eps): eps for eps in eps_of_norms if eps is not None}
    for eps in report.stated_eps:
        if known and _single(eps) not in known:
            yield StoredProblem(
                kind=StoredProblemKind.EPS,
                name="",
                message=f"the file names the eps {eps:g}, and no norm runs with it",
                found=", ".join(f"{other:g}" for other in sorted(known.values())),
                expected=f"{eps:g}",
            )


def _single(eps: float) -> float:
    """Return what float32 makes of it."""
    rounded: float = struct.unpack("f", struct.pack("f", eps))[0]
    return rounded


# What the headers tell.


def _missing(parameters: Iterable[StoredParameter]) -> Iterator[StoredProblem]:
    for item in parameters:
        if item.problem is ParameterProblem.MISSING:
            yield StoredProblem(
                kind=StoredProblemKind.MISSING,
                name=item.name,
                message="missing from the weights, and filled with fresh values on loading",
                found="no stored tensor",
                expected="a stored tensor",
            )


def _misshapen(parameters: Iterable[StoredParameter]) -> Iterator[StoredProblem]:
    for item in parameters:
        if item.problem is ParameterProblem.SHAPE:
            yield StoredProblem(
                kind=StoredProblemKind.SHAPE,
                name=item.name,
                message="stored with another shape than the model has",
                found=_shape(item.shape),
                expected=_shape(item.model_shape),
            )


def _whole_numbers(parameters: Iterable[StoredParameter]) -> Iterator[StoredProblem]:
    for item in parameters:
        if item.dtype is not None and item.dtype.startswith(_WHOLE):
            yield StoredProblem(
                kind=StoredProblemKind.WHOLE_NUMBERS,
                name=item.name,
                message="stored in a type of whole numbers, without its fractions",
                found=item.dtype,
                expected="a type of floating point",
            )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "unknown" if shape is None else "×".join(map(str, shape)) or "scalar"


def _unexpected(names: Iterable[str]) -> Iterator[StoredProblem]:
    for name in names:
        yield StoredProblem(
            kind=StoredProblemKind.UNEXPECTED,
            name=name,
            message="a stored tensor that the model does not read",
            found="a stored tensor",
            expected="none of that name",
        )


def _renamed(parameters: Iterable[StoredParameter]) -> Iterator[StoredProblem]:
    for item in parameters:
        stored = item.stored_name
        if item.renamed and stored is not None and not _same_but_for_prefix(stored, item.name):
            yield StoredProblem(
                kind=StoredProblemKind.RENAMED,
                name=item.name,
                message="read only because it is renamed on loading",
                found=stored,
                expected=item.name,
            )


def _same_but_for_prefix(one: str, other: str) -> bool:
    """Tell whether the names are one within the model: a head's prefix goes and comes."""
    return f".{one}".endswith(f".{other}") or f".{other}".endswith(f".{one}")


# What the values tell.


def _offsets(parameters: Iterable[StoredParameter]) -> Iterator[StoredProblem]:
    """Judge all gains of one form together: a single norm of a trained model lies anywhere."""
    gains = [item.values for item in parameters if item.is_gain and item.values is not None]
    for offset in (0.0, 1.0):
        means = [values.mean for values in gains if values.offset == offset]
        means = [mean for mean in means if math.isfinite(mean)]
        if means:
            yield from _centred(median(means), offset)


def _centred(centre: float, offset: float) -> Iterator[StoredProblem]:
    usual = 1 - offset
    shift = round(centre - usual)
    why = _SHIFTS.get((offset, shift))
    if why is None or abs(centre - usual - shift) >= _NEAR:
        return
    yield StoredProblem(
        kind=StoredProblemKind.OFFSET,
        name="",
        message=f"the stored gains are centred near {usual + shift:g}, {why}",
        found=f"a median of {centre:.3g}",
        expected=f"centred near {usual:g}",
    )


def _non_finite(item: StoredParameter, values: ValueFacts) -> Iterator[StoredProblem]:
    if values.non_finite:
        yield StoredProblem(
            kind=StoredProblemKind.NON_FINITE,
            name=item.name,
            message="NaN or infinite values",
            found=f"{values.non_finite} of {values.count} values",
            expected="finite values",
        )


def _all_zero(item: StoredParameter, values: ValueFacts) -> Iterator[StoredProblem]:
    if item.is_gain and _is_all_zero(values):
        yield StoredProblem(
            kind=StoredProblemKind.ALL_ZERO,
            name=item.name,
            message="a gain of zero in every channel",
            found=f"0 in all {values.count} channels",
            expected="a gain that lets something through",
        )


def _constant(item: StoredParameter, values: ValueFacts) -> Iterator[StoredProblem]:
    if _is_constant(values) and values.count > 1 and not (item.is_gain and _is_all_zero(values)):
        effective = values.minimum + values.offset
        what, fresh = ("a gain", 1) if item.is_gain else ("a bias", 0)
        untrained = ", as before training" if effective == fresh else ""
        yield StoredProblem(
            kind=StoredProblemKind.CONSTANT,
            name=item.name,
            message=f"{what} of {effective:g} in every channel{untrained}",
            found=f"{effective:g} in all {values.count} channels",
            expected="values that differ",
        )


def _dead(item: StoredParameter, values: ValueFacts) -> Iterator[StoredProblem]:
    if item.is_gain and values.dead and not _is_all_zero(values):
        yield StoredProblem(
            kind=StoredProblemKind.DEAD_CHANNELS,
            name=item.name,
            message="channels that a gain of zero switches off",
            found=f"{values.dead} of {values.count} channels",
            expected="none",
        )


def _outliers(item: StoredParameter, values: ValueFacts) -> Iterator[StoredProblem]:
    if item.is_gain and values.outliers:
        yield StoredProblem(
            kind=StoredProblemKind.OUTLIERS,
            name=item.name,
            message="channels whose gain is over 10 times the median",
            found=f"{values.outliers} of {values.count} channels, "
            f"the largest is channel {values.largest_channel}",
            expected="none",
        )


def _is_constant(values: ValueFacts) -> bool:
    return not values.non_finite and values.minimum == values.maximum


def _is_all_zero(values: ValueFacts) -> bool:
    return _is_constant(values) and values.minimum + values.offset == 0
