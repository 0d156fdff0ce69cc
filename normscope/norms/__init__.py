"""Graph -> the normalizations in it, fused and written out."""

from normscope.norms.condense import condense_norms
from normscope.norms.find import find_norms
from normscope.norms.norm import EpsPosition, Gain, Norm, NormKind

__all__ = ["EpsPosition", "Gain", "Norm", "NormKind", "condense_norms", "find_norms"]
