"""Inspection + the checkpoint's files -> what they hold of its norms."""

from dataclasses import replace
from typing import Any

from normscope.checkpoint import Checkpoint
from normscope.comparison import norm_parameters
from normscope.errors import FailureKind, NormscopeError
from normscope.inspection import Inspection
from normscope.weights.files import has_pickled_files
from normscope.weights.report import WeightsLevel

_PICKLED = (
    "the weights are pickled and were not opened; --weights norms reads them with torch's "
    "loader that runs no code"
)
_UNREADABLE = frozenset({FailureKind.MISSING_DEPENDENCY, FailureKind.UNKNOWN_ARCHITECTURE})
"""Why weights that nobody asked for may stay unread; the answer is then the structure alone."""


def with_stored_parameters(
    inspection: Inspection,
    checkpoint: Checkpoint,
    module: Any,
    *,
    asked: WeightsLevel | None,
    local: WeightsLevel,
) -> Inspection:
    """Add what the checkpoint's files say of its norms, and what an adapter trains of them.

    Where `asked` is None, weights that lie here are read as far as `local` says. Raises
    `NormscopeError` for files that cannot be read.
    """
    if checkpoint.adapter is not None:
        from normscope.weights.adapter import read_adapter

        adapter = read_adapter(checkpoint, norm_parameters(inspection))
        inspection = replace(inspection, adapter=adapter)
    level = local if asked is None else asked
    if level is WeightsLevel.NONE:
        return inspection
    from normscope.weights.read import read_weights
    from normscope.weights.source import open_source

    given = asked is not None
    try:
        source = open_source(checkpoint, pickled=given, remote=given)
        if source is None:
            return _warned(inspection, *((_PICKLED,) if has_pickled_files(checkpoint) else ()))
        stored = read_weights(source, module, norm_parameters(inspection), level)
    except NormscopeError as error:
        if given or error.kind not in _UNREADABLE:
            raise
        return _warned(inspection, f"the weights were not read: {error.message}")
    return replace(inspection, weights=level.value, stored=stored)


def _warned(inspection: Inspection, *warnings: str) -> Inspection:
    return replace(inspection, warnings=(*inspection.warnings, *warnings))
