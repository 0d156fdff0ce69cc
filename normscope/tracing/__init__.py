"""module + inputs -> Graph: one forward pass, recorded operation by operation."""

from normscope.tracing.eager import running_eagerly
from normscope.tracing.mode import evaluating
from normscope.tracing.trace import trace_module

__all__ = ["evaluating", "running_eagerly", "trace_module"]
