"""module + inputs -> Graph: one forward pass, recorded operation by operation."""

from normscope.tracing.trace import trace_module

__all__ = ["trace_module"]
