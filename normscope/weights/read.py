"""Tensors + module -> what is stored of its norms' parameters, without loading the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

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
    names = match_names(module, source.describe())
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
    )


def read_norm_values(
    source: TensorSource, module: nn.Module, wanted: Sequence[WantedParameter]
) -> Mapping[str, torch.Tensor]:
    """Return the effective values (w, or 1 + w) of the norms' parameters in float64, by name.

    Those that are missing, of another shape or computed on loading are left out. Raises as
    `read_weights`.
    """
    names = match_names(module, source.describe())
    known = {
        parameter: stored.stored_name
        for parameter in wanted
        if (stored := _held(parameter, names)).stored_name is not None and _is_copied(stored)
    }
    values = dict(source.read(known.values()))
    return {
        parameter.name: values[stored].double() + parameter.offset
        for parameter, stored in known.items()
    }


def _is_copied(parameter: StoredParameter) -> bool:
    return parameter.problem is None and not parameter.converted


def _held(parameter: WantedParameter, names: LoadedNames) -> StoredParameter:
    tensor = names.source.get(parameter.name)
    if tensor is None:
        return StoredParameter(
            name=parameter.name,
            is_gain=parameter.is_gain,
            stored_name=None,
            file=None,
            dtype=None,
            shape=None,
            problem=ParameterProblem.MISSING,
        )
    converted = parameter.name in names.converted
    fits = converted or tensor.shape == names.shapes[parameter.name]
    return StoredParameter(
        name=parameter.name,
        is_gain=parameter.is_gain,
        stored_name=tensor.name,
        file=tensor.file,
        dtype=tensor.dtype,
        shape=tensor.shape,
        problem=None if fits else ParameterProblem.SHAPE,
        converted=converted,
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
            values=describe_values(values[parameter.stored_name], offset=want.offset)
            if parameter.stored_name in values and _is_copied(parameter)
            else None,
        )
        for parameter, want in zip(parameters, wanted, strict=True)
    )
