"""Tensors + module -> what is stored of its norms' parameters, without loading the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import nn

from normscope.weights.effective import EffectiveValue
from normscope.weights.extra import extra_norm_tensors
from normscope.weights.gains import describe_values
from normscope.weights.names import LoadedNames, match_names
from normscope.weights.report import (
    ParameterProblem,
    StoredParameter,
    WantedParameter,
    WeightsLevel,
    WeightsReport,
)
from normscope.weights.stored import TensorSource
from normscope.weights.stored_norms import StoredNorms
from normscope.weights.unread_norms import unread_norm_tensors


def read_weights(
    source: TensorSource,
    module: nn.Module,
    wanted: Sequence[WantedParameter],
    level: WeightsLevel,
) -> WeightsReport:
    """Hold the norms' parameters against the tensors in the checkpoint's files.

    At `headers` no value is read, at `norms` those of the norms alone. Raises `NormscopeError` of
    kind `corrupt` for bad files.
    """
    norms = [parameter.name for parameter in wanted]
    stored = source.describe()
    names = match_names(module, stored, source.renaming(module), norms)
    parameters = tuple(_held(parameter, names) for parameter in wanted)
    if level is WeightsLevel.NORMS:
        parameters = _with_values(source, parameters, wanted)
    return WeightsReport(
        level=level,
        container=source.container.value,
        files=source.files,
        file_bytes=source.file_bytes,
        bytes_read=source.bytes_read,
        parameters=parameters,
        unexpected=names.unexpected,
        unread_norms=unread_norm_tensors(names, stored, norms, source.container),
        quantized=len(names.quantized),
        stated_eps=source.stated_eps,
    )


def read_stored_norms(
    source: TensorSource, module: nn.Module, wanted: Sequence[WantedParameter]
) -> StoredNorms:
    """Return the norms' tensors with their effective values (w, or 1 + w), for a comparison.

    Raises as `read_weights`.
    """
    stored = source.describe()
    norms = [parameter.name for parameter in wanted]
    names = match_names(module, stored, source.renaming(module), norms)
    held = {parameter.name: _held(parameter, names) for parameter in wanted}
    return StoredNorms(
        parameters=held,
        extra=tuple(extra_norm_tensors(names, stored, norms)),
        values=_effective(source, held, wanted),
    )


def _effective(
    source: TensorSource,
    held: Mapping[str, StoredParameter],
    wanted: Sequence[WantedParameter],
) -> Mapping[str, EffectiveValue]:
    """Return also what has another shape than the model's: two files can be wrong alike."""
    known = [
        (held[want.name], held[want.name].stored_name, want.offset)
        for want in wanted
        if not held[want.name].converted
    ]
    values = dict(source.read(stored for _, stored, _ in known if stored is not None))
    return {
        item.name: EffectiveValue.of(values[stored], offset=offset, added=item.added)
        for item, stored, offset in known
        if stored is not None
    }


def _is_copied(parameter: StoredParameter) -> bool:
    return parameter.problem is None and not parameter.converted


def _held(parameter: WantedParameter, names: LoadedNames) -> StoredParameter:
    tensor = names.source.get(parameter.name)
    shape = names.shapes.get(parameter.name)
    if tensor is None:
        return StoredParameter(
            name=parameter.name,
            is_gain=parameter.is_gain,
            stored_name=None,
            file=None,
            dtype=None,
            shape=None,
            model_shape=shape,
            problem=ParameterProblem.MISSING,
        )
    added = names.renaming.added(tensor)
    fits = added is None or tensor.shape == shape
    return StoredParameter(
        name=parameter.name,
        is_gain=parameter.is_gain,
        stored_name=tensor.name,
        file=tensor.file,
        dtype=tensor.dtype,
        shape=tensor.shape,
        model_shape=shape,
        problem=None if fits else ParameterProblem.SHAPE,
        converted=added is None,
        added=added or 0.0,
        tied_to=names.tied.get(parameter.name),
    )


def _with_values(
    source: TensorSource,
    parameters: Sequence[StoredParameter],
    wanted: Sequence[WantedParameter],
) -> tuple[StoredParameter, ...]:
    copied = {p.stored_name for p in parameters if _is_copied(p) and p.stored_name is not None}
    values = dict(source.read(copied))
    return tuple(
        replace(
            parameter,
            values=describe_values(
                values[parameter.stored_name], offset=want.offset - parameter.added
            )
            if parameter.stored_name in values and _is_copied(parameter)
            else None,
        )
        for parameter, want in zip(parameters, wanted, strict=True)
    )
