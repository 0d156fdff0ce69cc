"""Statistics -> what stands out in them, by the rules NS401 to NS406."""

from normscope.activations.outliers import massive_activations, sinks
from normscope.activations.ranges import large_eps, not_finite, too_large_for_float16
from normscope.activations.wrong_outputs import wrong_outputs
from normscope.statistics import (
    DEFAULT_THRESHOLDS,
    Statistics,
    StatisticsFinding,
    Thresholds,
)


def find_in_statistics(
    statistics: Statistics, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[StatisticsFinding, ...]:
    """Return every finding, by code and then in order of the norms."""
    return (
        *massive_activations(statistics, thresholds),
        *sinks(statistics, thresholds),
        *too_large_for_float16(statistics),
        *large_eps(statistics, thresholds),
        *wrong_outputs(statistics, thresholds),
        *not_finite(statistics),
    )
