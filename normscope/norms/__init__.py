"""Graph -> the normalizations in it, fused and written out."""

from normscope.norms.find import find_norms
from normscope.norms.norm import EpsPosition, Gain, Norm, NormKind

__all__ = ["EpsPosition", "Gain", "Norm", "NormKind", "find_norms"]
