"""Checkpoint + assignment + the policy's `[stats]` -> why it is not measured, if it is not."""

from normscope.audit.policy import Assignment, Measuring
from normscope.audit.rule import Need
from normscope.audit.rules import RULES
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.weights.files import has_pickled_files, has_weight_files


def why_unmeasured(
    assignment: Assignment, checkpoint: Checkpoint, measuring: Measuring | None
) -> str | None:
    """Return why an audit does not run the checkpoint, None where it does; nothing is loaded."""
    if not any(rule.needs is Need.STATISTICS for rule in RULES if rule.code in assignment.rules):
        return "no rule asks for it"
    if measuring is None:
        return "the policy has no [stats] input"
    if checkpoint.kind is CheckpointKind.PYTHON:
        return "there is no tokenizer for the policy's input"
    if checkpoint.kind is CheckpointKind.GGUF:
        return None
    if checkpoint.repository is not None:
        return "the weights do not lie here"
    if not has_weight_files(checkpoint) and not has_pickled_files(checkpoint):
        return "there are no weights"
    return None
