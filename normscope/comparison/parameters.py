"""Inspection -> the parameters of its norms that a checkpoint's files are asked for."""

from collections.abc import Iterator

from normscope.inspection import Inspection, NormReport
from normscope.weights.report import WantedParameter


def norm_parameters(inspection: Inspection) -> tuple[WantedParameter, ...]:
    """Return gains and biases of all norms, each once, in order of execution."""
    found = {item.name: item for norm in inspection.norms for item in _parameters(norm)}
    return tuple(found.values())


def _parameters(norm: NormReport) -> Iterator[WantedParameter]:
    if norm.weight is not None:
        offset = 1.0 if norm.gain == "1+w" else 0.0
        yield WantedParameter(name=norm.weight, offset=offset)
    if norm.bias_name is not None:
        yield WantedParameter(name=norm.bias_name, is_gain=False)
