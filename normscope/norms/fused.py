"""Graph -> the norms that run as one fused operation."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from normscope.graph import Graph, Node
from normscope.norms.affine import Affine, follow_affine
from normscope.norms.norm import EpsPosition, Gain, Norm, NormKind
from normscope.norms.parameters import standardizes_a_weight, stored_factor

_MACHINE_EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
"""What torch's RMS norm takes for eps where None is given, by the dtype that it computes in."""
_SCHEMA_EPS = 1e-5
"""What `layer_norm` and `group_norm` take: torch leaves out an argument that has this value."""

_BATCH_NORMS = frozenset(
    {
        "native_batch_norm",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training",
        "_batch_norm_no_update",
        "cudnn_batch_norm",
        "batch_norm",
        "_batch_norm_with_update",
    }
)


def find_fused(graph: Graph) -> Iterator[Norm]:
    """Yield the layer, RMS, group, batch and instance norms that are one operation."""
    for node in graph.nodes:
        build = _BUILDERS.get(node.operation)
        if build is not None and not standardizes_a_weight(graph, node.operands[0], node.index):
            yield _with_written_gain(graph, build(graph, node))


def _with_written_gain(graph: Graph, norm: Norm) -> Norm:
    """Add a gain that is multiplied on behind an operation without one, and a bias behind that.

    A bias alone is none of the norm's: positions are added to normalized embeddings.
    """
    if norm.gain is not Gain.NONE or norm.bias:
        return norm
    affine = follow_affine(graph, Affine(output=norm.output))
    if affine.gain is None:
        return norm
    return replace(
        norm,
        output=affine.output,
        interior=norm.interior | affine.interior,
        factor=affine.factor,
        gain=affine.gain.form,
        weight=affine.gain.parameter,
        gain_dtype=affine.gain_dtype,
        bias=affine.bias is not None,
        bias_name=affine.bias.parameter if affine.bias is not None else None,
    )


def _feature_norm(graph: Graph, node: Node, kind: NormKind, default: float | None) -> Norm:
    size = node.argument("normalized_shape")
    shape = tuple(size) if isinstance(size, tuple) else ()
    eps = node.argument("eps")
    value = float(eps) if isinstance(eps, int | float) else default
    axes = tuple(range(-len(shape), 0))
    return _fused(graph, node, kind, axes, tuple(int(item or 0) for item in shape), value)


def _layer_norm(graph: Graph, node: Node) -> Norm:
    return _feature_norm(graph, node, NormKind.LAYER, _SCHEMA_EPS)


def _rms_norm(graph: Graph, node: Node) -> Norm:
    return _feature_norm(graph, node, NormKind.RMS, _MACHINE_EPS[_computed_in(node)])


def _group_norm(graph: Graph, node: Node) -> Norm:
    source = graph.nodes[node.operands[0]]
    groups = node.argument("group", node.argument("num_groups"))
    eps = node.argument("eps")
    count = int(groups) if isinstance(groups, int) else None
    channels = source.shape[1]
    axes = tuple(range(1, len(source.shape)))
    value = float(eps) if isinstance(eps, int | float) else _SCHEMA_EPS
    return _fused(graph, node, NormKind.GROUP, axes, (channels,), value, groups=count)


def _batch_norm(graph: Graph, node: Node) -> Norm:
    source = graph.nodes[node.operands[0]]
    eps = node.argument("eps", node.argument("epsilon"))
    value = float(eps) if isinstance(eps, int | float) else None
    folded = _instance_source(graph, source)
    if folded is not None:
        axes = tuple(range(2, len(folded.shape)))
        return _fused(graph, node, NormKind.INSTANCE, axes, (folded.shape[1],), value)
    axes = (0, *range(2, len(source.shape)))
    frozen = node.operand("running_mean") is not None and node.argument("training") is not True
    return _fused(
        graph, node, NormKind.BATCH, axes, (source.shape[1],), value, frozen_statistics=frozen
    )


def _instance_source(graph: Graph, source: Node) -> Node | None:
    """torch runs an instance norm as a batch norm of [1, batch·channels, …]."""
    if source.operation not in {"view", "_unsafe_view", "reshape", "_reshape_alias"}:
        return None
    before = graph.nodes[source.operands[0]]
    while before.operation in {"clone", "contiguous"}:
        before = graph.nodes[before.operands[0]]
    folded = (
        len(before.shape) == len(source.shape)
        and source.shape[0] == 1
        and before.shape[0] * before.shape[1] == source.shape[1]
        and before.shape[2:] == source.shape[2:]
    )
    return before if folded and before.shape[0] > 1 else None


def _fused(
    graph: Graph,
    node: Node,
    kind: NormKind,
    axes: tuple[int, ...],
    shape: tuple[int, ...],
    eps: float | None,
    *,
    groups: int | None = None,
    frozen_statistics: bool = False,
) -> Norm:
    weight, bias = node.operand("weight"), node.operand("bias")
    gain = stored_factor(graph, weight) if weight is not None else None
    offset = stored_factor(graph, bias) if bias is not None else None
    dtype = _computed_in(node)
    form = Gain.NONE if weight is None else (gain.form if gain is not None else Gain.OTHER)
    return Norm(
        kind=kind,
        input=node.operands[0],
        normalized=None if weight is not None or bias is not None else node.index,
        output=node.index,
        # The saved statistics are outputs of the operation that nothing reads on.
        interior=frozenset({node.index, *_unread_outputs(graph, node)}),
        axes=axes,
        shape=shape,
        groups=groups,
        eps=eps,
        eps_position=EpsPosition.INSIDE if eps else EpsPosition.NONE,
        gain=form,
        bias=bias is not None,
        weight=gain.parameter if gain is not None else None,
        bias_name=offset.parameter if offset is not None else None,
        statistics_dtype=dtype,
        gain_dtype=None if weight is None else dtype,
        frozen_statistics=frozen_statistics,
    )


def _computed_in(node: Node) -> str:
    """Return the dtype of a fused kernel: half precision in float32, gain and bias included."""
    return "float64" if node.dtype == "float64" else "float32"


def _unread_outputs(graph: Graph, node: Node) -> list[int]:
    return [
        reader
        for reader in graph.consumers[node.index]
        if graph.nodes[reader].operation == "getitem" and not graph.consumers[reader]
    ]


_BUILDERS: dict[str, Callable[[Graph, Node], Norm]] = {
    "native_layer_norm": _layer_norm,
    "layer_norm": _layer_norm,
    "_fused_rms_norm": _rms_norm,
    "rms_norm": _rms_norm,
    "native_group_norm": _group_norm,
    "group_norm": _group_norm,
    **dict.fromkeys(_BATCH_NORMS, _batch_norm),
}
