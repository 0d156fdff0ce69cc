"""One norm -> what a half-precision run of it casts, and where."""

from normscope.graph import Graph
from normscope.norms import Gain, Norm, find_norms

_HALF = frozenset({"bfloat16", "float16"})


def cast_order(graph: Graph, norm: Norm) -> str | None:
    """Return `before gain`, `after gain`, `no cast`, or None where it is not known.

    Llama multiplies its gain with what was cast back already, Gemma and torch's own kernels cast
    the product.
    """
    found = _in_half(graph, norm)
    return None if found is None else _order(*found)


def squares_in_half(graph: Graph, norm: Norm) -> bool | None:
    """Tell whether values are squared in half precision, None where it is not known."""
    found = _in_half(graph, norm)
    if found is None:
        return None
    run, dtype = found
    return (run.squares_dtype or run.statistics_dtype) == dtype


def _in_half(graph: Graph, norm: Norm) -> tuple[Norm, str] | None:
    """Return the norm as it runs in half precision, and in which.

    That is the pass itself where it is one, else the norm's class run alone.
    """
    dtype = _dtype_before(graph, norm.input)
    if dtype in _HALF:
        return norm, dtype
    if norm.module is None or norm.module not in graph.modules:
        return None
    alone = graph.halved.get(graph.modules[norm.module].class_name)
    found = find_norms(alone) if alone is not None else ()
    if alone is None or len(found) != 1:
        return None
    return found[0], _dtype_before(alone, found[0].input)


def _dtype_before(graph: Graph, value: int) -> str:
    """Return the dtype of a norm's input ahead of the cast that the norm itself begins with."""
    node = graph.nodes[value]
    cast = node.operation in {"_to_copy", "to"} and node.dtype not in _HALF
    return graph.nodes[node.operands[0]].dtype if cast and node.operands else node.dtype


def _order(norm: Norm, dtype: str) -> str | None:
    if norm.statistics_dtype == dtype:
        return "no cast"
    if norm.gain is Gain.NONE or norm.gain_dtype is None:
        return None
    return "before gain" if norm.gain_dtype == dtype else "after gain"
