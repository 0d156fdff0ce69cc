"""Two inspections -> what differs between their norms."""

from normscope.comparison.compare import compare_inspections
from normscope.comparison.difference import Compared, Comparison, Difference, NormPair
from normscope.comparison.parameters import norm_parameters
from normscope.comparison.storage import storage_differences

__all__ = [
    "Compared",
    "Comparison",
    "Difference",
    "NormPair",
    "compare_inspections",
    "norm_parameters",
    "storage_differences",
]
