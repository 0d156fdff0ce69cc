"""What was typed of limits -> what one answer may take of this process."""

from normscope.cli.process_limits import ProcessLimits
from normscope.limits import Limits

SECONDS = 180.0
"""Of computing; the slowest of transformers' types takes a tenth of it."""
MEMORY = 4_000_000_000
"""The largest of transformers' types take a tenth of it."""


def read_budget(
    process: ProcessLimits | None = None,
    *,
    modules: int | None = None,
    operations: int | None = None,
) -> Limits:
    """Return the limits of one answer; a limit of the whole process takes the place of ours."""
    usual = Limits()
    timed = process is not None and process.seconds is not None
    bounded = process is not None and process.memory is not None
    return Limits(
        modules=modules or usual.modules,
        operations=operations or usual.operations,
        seconds=None if timed else SECONDS,
        memory=None if bounded else MEMORY,
    )


def measuring_budget(*, modules: int | None) -> Limits:
    """Return the limits of a measurement, which takes the time and the memory of its weights."""
    return Limits(modules=modules or Limits().modules)
