"""Norm + the value that went in -> what its formula gives, in float64.

y = gain * factor * (x - mean) / scale + bias over the rows of the norm, where the scale is the root
of the mean (or sum) of squares, with eps as it is reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch
from torch import nn

from normscope.activations.reduce import rows_of
from normscope.graph import Graph, Node, Origin
from normscope.model import StoredTensors, is_offloaded
from normscope.norms import EpsPosition, Gain, Norm, NormKind

_UNCENTRED = frozenset({NormKind.RMS, NormKind.L2})
_BY_CHANNEL = frozenset({NormKind.BATCH, NormKind.GROUP, NormKind.INSTANCE})
"""These have one gain a channel, on the second axis of a fused operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStatistics:
    """Names of the buffers that a norm with frozen statistics normalizes by."""

    mean: str | None
    variance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tensors of a norm that its module stores, in float64."""

    gain: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    mean: torch.Tensor | None = None
    variance: torch.Tensor | None = None


def stored_statistics(graph: Graph, norm: Norm) -> StoredStatistics | None:
    """Return which buffers a norm normalizes by; None where it takes its input's statistics."""
    if not norm.frozen_statistics:
        return None
    node = graph.nodes[norm.output]
    mean, variance = node.operand("running_mean"), node.operand("running_var")
    if mean is not None and variance is not None:
        return StoredStatistics(mean=graph.nodes[mean].name, variance=graph.nodes[variance].name)
    return _written_out(graph, norm)


def _written_out(graph: Graph, norm: Norm) -> StoredStatistics | None:
    """The variance stands under a root; the mean is what is left beside gain, bias and it."""
    behind = _stored_behind(graph, norm)
    roots = [node for node in behind if node.operation in {"rsqrt", "sqrt", "pow"}]
    under = {node.name for root in roots for node in _leaves(graph, root)}
    rest = {node.name for node in behind if node.name} - under - {norm.weight, norm.bias_name}
    if len(under) != 1 or len(rest) > 1:
        return None
    return StoredStatistics(mean=next(iter(rest), None), variance=under.pop())


def _stored_behind(graph: Graph, norm: Norm) -> list[Node]:
    """Return every value behind the norm that no input reaches."""
    pending = [
        operand
        for index in norm.interior
        for operand in graph.nodes[index].operands
        if not graph.depends_on_input[operand]
    ]
    for index in pending:
        pending += [item for item in graph.nodes[index].operands if item not in pending]
    return [graph.nodes[index] for index in dict.fromkeys(pending)]


def _leaves(graph: Graph, node: Node) -> list[Node]:
    pending = [node.index]
    for index in pending:
        pending += graph.nodes[index].operands
    stored = {Origin.BUFFER, Origin.PARAMETER}
    return [graph.nodes[index] for index in pending if graph.nodes[index].origin in stored]


def tensors_of(module: nn.Module) -> Mapping[str, torch.Tensor]:
    """Return the parameters and buffers of a module, those of shared modules by every name.

    What is offloaded comes from its file when it is asked for.
    """
    held = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    return StoredTensors(module, held) if is_offloaded(module) else held


def stored_of(
    norm: Norm, statistics: StoredStatistics | None, tensors: Mapping[str, torch.Tensor]
) -> Stored | None:
    """Return what the formula needs of a module's tensors; None where it is not all known."""
    unknown = (
        norm.gain is Gain.OTHER
        or (norm.gain is not Gain.NONE and norm.weight is None)
        or (norm.bias and norm.bias_name is None)
        or (norm.frozen_statistics and statistics is None)
    )
    names = [norm.weight, norm.bias_name if norm.bias else None]
    names += [statistics.mean, statistics.variance] if statistics is not None else [None, None]
    found = [None if name is None else tensors.get(name) for name in names]
    missing = any(
        name is not None and (value is None or value.is_meta)
        for name, value in zip(names, found, strict=True)
    )
    if unknown or missing:
        return None
    gain, bias, mean, variance = (None if v is None else v.detach().double() for v in found)
    if gain is not None and norm.gain is Gain.ONE_PLUS_W:
        gain = gain + 1.0
    return Stored(gain=gain, bias=bias, mean=mean, variance=variance)


def apply_formula(norm: Norm, value: torch.Tensor, stored: Stored) -> torch.Tensor:
    """Return the norm of `value` in float64, in its shape."""
    wide = value.double()
    if stored.variance is not None:
        mean = 0.0 if stored.mean is None else _by_channel(norm, stored.mean, wide)
        scale = _scale(norm, _by_channel(norm, stored.variance, wide))
        found = (wide - mean) / scale
    else:
        found = _normalized(norm, wide) * norm.factor
    if stored.gain is not None:
        found = found * _placed(norm, stored.gain, found)
    return found if stored.bias is None else found + _placed(norm, stored.bias, found)


def _normalized(norm: Norm, wide: torch.Tensor) -> torch.Tensor:
    rows = rows_of(wide, norm.axes, norm.groups)
    if norm.kind not in _UNCENTRED:
        rows = rows - rows.mean(-1, keepdim=True)
    square = rows.square()
    by_sum = norm.kind is NormKind.L2
    under = square.sum(-1, keepdim=True) if by_sum else square.mean(-1, keepdim=True)
    return _unrowed(rows / _scale(norm, under), norm, wide)


def _scale(norm: Norm, square: torch.Tensor) -> torch.Tensor:
    eps = norm.eps or 0.0
    if norm.eps_position is EpsPosition.INSIDE:
        return (square + eps).sqrt()
    if norm.eps_position is EpsPosition.OUTSIDE:
        return square.sqrt() + eps
    return square.sqrt().clamp_min(eps) if norm.eps_position is EpsPosition.CLAMP else square.sqrt()


def _unrowed(rows: torch.Tensor, norm: Norm, like: torch.Tensor) -> torch.Tensor:
    """Undo `rows_of`: put the reduced axes back where they were."""
    if norm.axes == (-1,):
        return rows.reshape(like.shape)
    positive = [axis % like.dim() for axis in norm.axes]
    kept = [axis for axis in range(like.dim()) if axis not in positive]
    if norm.groups:
        return rows.reshape(like.shape)  # the groups are split off the first axis, in order
    turned = rows.reshape([like.shape[axis] for axis in (*kept, *positive)])
    return turned.movedim(tuple(range(len(kept), like.dim())), positive)


def _placed(norm: Norm, stored: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a gain or bias in a shape that broadcasts over `like` as in the norm."""
    if norm.kind in _BY_CHANNEL:
        return _by_channel(norm, stored, like)
    positive = [axis % like.dim() for axis in norm.axes]
    if positive != list(range(like.dim() - len(positive), like.dim())):
        sizes = [size if axis in positive else 1 for axis, size in enumerate(like.shape)]
        return stored.reshape(sizes) if stored.numel() == prod(sizes) else stored
    if stored.dim() > 1 or stored.numel() in {1, like.shape[-1]}:
        return stored
    # One gain for all groups or heads, which the value has on axes of their own.
    fitting = (n for n in range(1, like.dim()) if prod(like.shape[-n:]) == stored.numel())
    return stored.reshape(like.shape[-next(fitting, 1) :])


def _by_channel(norm: Norm, stored: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    reduced = {axis % like.dim() for axis in norm.axes}
    channel = next((axis for axis in range(like.dim()) if axis not in reduced), 1)
    if norm.kind is not NormKind.BATCH:
        channel = 1
    if norm.kind is NormKind.INSTANCE:
        # torch runs it as a batch norm of [1, batch * channels, …].
        stored = stored.flatten().repeat(like.shape[channel] // stored.numel())
    if stored.numel() != like.shape[channel]:
        return stored
    return stored.reshape([-1 if axis == channel else 1 for axis in range(like.dim())])
