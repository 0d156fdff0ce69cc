"""Checkpoint -> why a rule on its stored norms cannot be checked; nothing is opened."""

from normscope.checkpoint import Checkpoint
from normscope.inspection import Inspection
from normscope.weights.files import has_pickled_files, has_weight_files
from normscope.weights.report import ParameterProblem, WeightsReport


def why_unread(checkpoint: Checkpoint, inspection: Inspection) -> str | None:
    """Return why weights that lie here were not read, None where they were or there are none."""
    if inspection.stored is not None or checkpoint.repository is not None:
        return None
    if has_weight_files(checkpoint):
        return "the weights were not read"
    if has_pickled_files(checkpoint):
        return "the weights are pickled and were not opened: `--weights norms` reads them"
    return None


def why_valueless(stored: WeightsReport) -> str | None:
    """Return why no value of a norm is known, None where one is or there is no parameter."""
    if not stored.parameters or any(item.values is not None for item in stored.parameters):
        return None
    problems = {item.problem for item in stored.parameters}
    if problems == {ParameterProblem.MISSING}:
        return "none of the norms' parameters is stored"
    if problems == {ParameterProblem.SHAPE}:
        return "the norms' parameters are stored with other shapes than the model has"
    if None not in problems:
        return "the norms' parameters are missing from the weights or have other shapes"
    return f"the values in {stored.container} files cannot be read"
