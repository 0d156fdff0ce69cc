"""Two inspections -> what differs between their norms."""

from normscope.comparison.compare import compare_inspections
from normscope.comparison.difference import Compared, Comparison, Difference, NormPair
from normscope.comparison.parameters import norm_parameters

__all__ = [
    "Compared",
    "Comparison",
    "Difference",
    "NormPair",
    "compare_inspections",
    "norm_parameters",
]
