"""Tensors + module -> what is stored of its norms' parameters, without loading the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import nn

from normscope.weights.effective import EffectiveValue
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
    names = _matched(source, module, wanted)
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
        quantized=len(names.quantized),
        stated_eps=source.stated_eps,
    )


def read_norm_values(
    source: TensorSource, module: nn.Module, wanted: Sequence[WantedParameter]
) -> Mapping[str, EffectiveValue]:
    """Return the effective values (w, or 1 + w) of the norms' parameters, by name.

    Those that are missing, of another shape or computed on loading are left out. Raises as
    `read_weights`.
    """
    names = _matched(source, module, wanted)
    held = [(_held(parameter, names), parameter.offset) for parameter in wanted]
    known = [(item, offset) for item, offset in held if _is_copied(item)]
    values = dict(source.read(item.stored_name for item, _ in known if item.stored_name))
    return {
        item.name: EffectiveValue.of(values[item.stored_name], offset=offset, added=item.added)
        for item, offset in known
        if item.stored_name is not None
    }


def _matched(
    source: TensorSource, module: nn.Module, wanted: Sequence[WantedParameter]
) -> LoadedNames:
    stored = source.describe()
    norms = [parameter.name for parameter in wanted]
    return match_names(module, stored, source.renaming(module), norms)


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
