"""One norm, written in many ways; all of them with random gains."""

import torch
from torch import nn
from torch.nn import functional

EPS = 1e-5


class Norm(nn.Module):
    """A norm of the last axis in the style that its name says."""

    def __init__(self, style: str, width: int) -> None:
        super().__init__()
        self.style = style
        self.a = nn.Parameter(torch.rand(width) + 0.5)
        self.b = nn.Parameter(torch.rand(width)) if style.startswith("layer") else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return STYLES[self.style](x, self.a, self.b)


def _layer_functional(x, a, b):
    return functional.layer_norm(x, (x.shape[-1],), a, b, EPS)


def _layer_rsqrt(x, a, b):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + EPS) * a + b


def _layer_var(x, a, b):
    variance = x.var(-1, keepdim=True, unbiased=False)
    return a * ((x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + EPS)) + b


def _rms_rsqrt(x, a, _b):
    return a * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS))


def _rms_one_over_sqrt(x, a, _b):
    return x * (1.0 / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)) * a


def _rms_pow(x, a, _b):
    return x * torch.pow(x.square().mean(-1, keepdim=True) + EPS, -0.5) * a


def _rms_vector_norm(x, a, _b):
    size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    root = x.shape[-1] ** 0.5
    return x / size.clamp_min(EPS * root) * root * a


def _rms_offset(x, a, _b):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * (1.0 + a)


def _layer_gain_first(x, a, b):
    variance = x.var(-1, keepdim=True, unbiased=False)
    return a * (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + EPS) + b


def _layer_gain_on_scale(x, a, b):
    variance = x.var(-1, keepdim=True, unbiased=False)
    return (x - x.mean(-1, keepdim=True)) * (a / torch.sqrt(variance + EPS)) + b


def _rms_gain_first(x, a, _b):
    return a * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def _rms_gain_on_scale(x, a, _b):
    return x * (a * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS))


STYLES = {
    "layer_gain_first": _layer_gain_first,
    "layer_gain_on_scale": _layer_gain_on_scale,
    "rms_gain_first": _rms_gain_first,
    "rms_gain_on_scale": _rms_gain_on_scale,
    "layer_functional": _layer_functional,
    "layer_rsqrt": _layer_rsqrt,
    "layer_var": _layer_var,
    "rms_rsqrt": _rms_rsqrt,
    "rms_one_over_sqrt": _rms_one_over_sqrt,
    "rms_pow": _rms_pow,
    "rms_vector_norm": _rms_vector_norm,
    "rms_offset": _rms_offset,
}


def build_norm(style: str, width: int) -> nn.Module:
    """Return a norm module of the style, its gain random."""
    if style == "layer_module":
        norm = nn.LayerNorm(width, eps=EPS)
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        return norm
    if style == "rms_module":
        rms = nn.RMSNorm(width, eps=EPS)
        nn.init.uniform_(rms.weight, 0.5, 1.5)
        return rms
    return Norm(style, width)
