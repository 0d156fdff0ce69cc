"""Norm module -> what it does, recovered from its outputs on random input alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from normscope.norms import EpsPosition, Gain, NormKind
from normscope.tracing.modules import tensors_in
from normscope.verification.norm_eps import measure_eps
from normscope.verification.norm_layout import Layout
from normscope.verification.norm_statistics import Groups, groups_of

Run = Callable[[torch.Tensor], torch.Tensor]

_CLOSE = 2e-3
"""Relative residual up to which a formula holds; float32 leaves about 1e-6."""
_RUNS = 3
"""Where a channel has one statistic in a run (BatchNorm), only several runs tell what it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNorm:
    """The facts of one norm as its outputs show them."""

    kind: NormKind | None
    """None for a module that normalizes by nothing of its input, or by no known formula."""
    residual: float
    """What the best formula leaves unexplained, relative to the output."""
    axes: tuple[int, ...]
    groups: int
    count: int
    """Elements that share one statistic."""
    gain: Gain = Gain.NONE
    bias: bool = False
    eps: float | None = None
    """In units of the mean of squares or its root."""
    eps_position: EpsPosition = EpsPosition.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """y = gain · r + bias by least squares, for one hypothesis of r."""

    centred: bool
    gain: torch.Tensor
    bias: torch.Tensor
    residual: float


def probe_norm(module: nn.Module, layout: Layout) -> ObservedNorm:
    """Probe a real float32 module; raises what its forward raises where the layout is not its own.

    The module's biases are zeroed on the way.
    """
    run = _runner(module)
    source = torch.Generator().manual_seed(1)
    x = _uneven(layout.shape, source)
    groups = groups_of(run, x)
    if groups.count == 1:
        return ObservedNorm(kind=None, residual=0.0, axes=(), groups=1, count=1)
    inputs = [x, *(_uneven(layout.shape, source) for _ in range(_RUNS - 1))]
    outputs = torch.stack([run(one).double() for one in inputs])
    fits = [_fit(inputs, outputs, groups, layout, centred=centred) for centred in (True, False)]
    fit = min(fits, key=lambda candidate: candidate.residual)
    if fit.residual > _CLOSE:
        return ObservedNorm(
            kind=None,
            residual=fit.residual,
            axes=groups.axes,
            groups=groups.groups,
            count=groups.count,
        )
    form, factor = _gain_form(module, fit.gain)
    bias = bool(fit.bias.abs().max() > _CLOSE)
    _zero_biases(module, fit.bias)
    eps, position = measure_eps(run, layout.shape, groups, centred=fit.centred)
    return ObservedNorm(
        kind=_kind(groups, layout, factor, centred=fit.centred),
        residual=fit.residual,
        axes=groups.axes,
        groups=groups.groups,
        count=groups.count,
        gain=form,
        bias=bias,
        eps=eps,
        eps_position=position,
    )


def _runner(module: nn.Module) -> Run:
    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return next(tensors_in(module(x.clone()))).float()

    return run


def _uneven(shape: tuple[int, ...], source: torch.Generator) -> torch.Tensor:
    """Un-normalized input: every row and every channel has a mean and a size of its own."""
    x = torch.randn(shape, generator=source)
    for axis in range(len(shape)):
        size = [shape[axis] if other == axis else 1 for other in range(len(shape))]
        x = x * (0.5 + torch.rand(size, generator=source)) + torch.randn(size, generator=source)
    return 8.0 * x


def _fit(
    inputs: list[torch.Tensor],
    y: torch.Tensor,
    groups: Groups,
    layout: Layout,
    *,
    centred: bool,
) -> _Fit:
    r = torch.stack([groups.normalized(x.double(), centred=centred) for x in inputs])
    others = (0, *(axis + 1 for axis in range(r.dim() - 1) if axis not in layout.features))
    mean_r, mean_y = r.mean(others, keepdim=True), y.mean(others, keepdim=True)
    covariance = ((r - mean_r) * (y - mean_y)).sum(others, keepdim=True)
    gain = covariance / (r - mean_r).square().sum(others, keepdim=True)
    bias = mean_y - gain * mean_r
    unexplained = (y - gain * r - bias).norm() / y.norm()
    return _Fit(centred=centred, gain=gain, bias=bias, residual=float(unexplained))


def _gain_form(module: nn.Module, gain: torch.Tensor) -> tuple[Gain, float]:
    """Return how the gain is made from the parameters, and the number that is left over."""
    flat = gain.flatten()
    for value in module.parameters():
        stored = value.detach().double().flatten()
        if stored.numel() not in {1, flat.numel()}:
            continue
        if torch.allclose(flat, 1.0 + stored, rtol=_CLOSE, atol=0.0):
            return Gain.ONE_PLUS_W, 1.0
        factor = (flat / stored).mean()
        if stored.numel() > 1 and torch.allclose(flat, factor * stored, rtol=_CLOSE, atol=0.0):
            return Gain.W, float(factor)
    factor = flat.mean()
    if not torch.allclose(flat, factor.expand_as(flat), rtol=_CLOSE, atol=0.0):
        return Gain.OTHER, 1.0
    single = [float(value) for value in module.parameters() if value.numel() == 1]
    form = Gain.W if any(math.isclose(factor, one, rel_tol=_CLOSE) for one in single) else Gain.NONE
    return form, 1.0 if form is Gain.W else float(factor)


def _zero_biases(module: nn.Module, bias: torch.Tensor) -> None:
    """Zero the parameter that is the bias, which would drown the small outputs of the eps test."""
    flat = bias.flatten()
    for value in module.parameters():
        stored = value.detach().flatten()
        if stored.numel() == flat.numel() and torch.allclose(
            flat.float(), stored, rtol=0.0, atol=_CLOSE
        ):
            value.zero_()


def _kind(groups: Groups, layout: Layout, factor: float, *, centred: bool) -> NormKind:
    if not centred:
        by_sum = math.isclose(factor, groups.count**-0.5, rel_tol=_CLOSE)
        return NormKind.L2 if by_sum else NormKind.RMS
    if 0 in groups.axes:
        return NormKind.BATCH
    if not set(groups.axes) & set(layout.features):
        return NormKind.INSTANCE
    beyond = set(groups.axes) - set(layout.features)
    return NormKind.GROUP if groups.groups > 1 or beyond else NormKind.LAYER
