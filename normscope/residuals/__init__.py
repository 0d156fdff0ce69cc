"""Condensed graph -> the residual stream, its adds and branches."""

from normscope.residuals.branches import Branch
from normscope.residuals.kinds import BranchKind
from normscope.residuals.stream import ResidualStream, StreamAdd, find_stream

__all__ = ["Branch", "BranchKind", "ResidualStream", "StreamAdd", "find_stream"]
