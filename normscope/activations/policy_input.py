"""target + the `[stats]` of a policy -> its statistics, or why there are none."""

from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.audit.policy import Measuring
from normscope.errors import FailureKind, NormscopeError
from normscope.statistics import Statistics


def measure_on_policy_input(
    target: str,
    measuring: Measuring,
    *,
    dtype: str | None,
    revision: str | None,
    offline: bool,
    trust_remote_code: bool,
) -> Statistics | str:
    """Load a checkpoint and measure it on the policy's texts.

    A checkpoint that cannot read a text gives the reason. Raises `NormscopeError` where it cannot
    be loaded or run, `UsageError` where the texts do not suit it.
    """
    wanted = MeasureOptions(
        texts=measuring.input,
        max_length=measuring.max_length,
        verify=measuring.verify,
        thresholds=measuring.thresholds,
        dtype=dtype,
        revision=revision,
        offline=offline,
        trust_remote_code=trust_remote_code,
    )
    try:
        return measure_checkpoint(target, wanted)
    except NormscopeError as error:
        if error.kind is not FailureKind.NO_INPUTS:
            raise
        return error.message
