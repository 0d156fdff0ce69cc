"""Spec -> module under meaningless names."""

import torch
from torch import nn
from torch.nn import functional

from specimens.norms import build_norm
from specimens.spec import SITES, Spec


class Attention(nn.Module):
    """Single-head attention, written out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.p, self.q, self.r, self.s = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.p(x) @ self.q(x).transpose(-1, -2) / x.shape[-1] ** 0.5
        return self.s(functional.softmax(scores, dim=-1) @ self.r(x))


class Convolution(nn.Module):
    """A convolution along the tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.c = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(x.transpose(1, 2)).transpose(1, 2)


class Perceptron(nn.Module):
    """Two linears with an activation between."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.u, self.v = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.v(functional.gelu(self.u(x)))


class Sum(nn.Module):
    """Adds in a child that was handed the residual."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y + x


def build_sublayer(kind: str, width: int) -> nn.Module:
    """Return what stands in the branch."""
    classes = {"attention": Attention, "conv": Convolution, "mlp": Perceptron}
    return nn.Linear(width, width) if kind == "linear" else classes[kind](width)


class Noise(nn.Module):
    """Steps that must not change a verdict, on the branch."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.d = nn.Dropout(0.1)
        if kind == "layer_scale":
            self.g = nn.Parameter(torch.rand(width))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        if self.kind == "cast":
            return y.to(torch.float64).to(torch.float32)
        if self.kind == "view":
            return y.reshape(y.shape[0], -1).reshape(y.shape).transpose(0, 1).transpose(0, 1)
        if self.kind == "dropout":
            return self.d(y)
        if self.kind == "layer_scale":
            return self.g * y
        if self.kind == "mask":
            return y.masked_fill(torch.zeros(y.shape[:2], dtype=torch.bool).unsqueeze(-1), 0.0)
        return y


class Block(nn.Module):
    """One block: the norms of the spec around one sublayer."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.m = build_sublayer(spec.sublayer, spec.width)
        self.n = Noise(spec.noise, spec.width)
        self.t = Sum()
        for site, name in (("input", "i"), ("output", "o"), ("trunk", "k")):
            present = site in SITES[spec.placement]
            setattr(self, name, build_norm(spec.norm, spec.width) if present else nn.Identity())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.n(self.o(self.m(self.i(x))))
        return self.k(add(self.spec.add, x, y, self.t))


def add(style: str, x: torch.Tensor, y: torch.Tensor, child: nn.Module) -> torch.Tensor:
    """Add a branch to the stream in the style that the name says."""
    if style == "swapped":
        return y + x
    if style == "inplace":
        y += x
        return y
    if style == "torch_add":
        return torch.add(x, y)
    if style == "addcmul":
        return torch.addcmul(x, y, torch.tensor(0.5))
    if style == "child":
        return child(x, y)
    if style == "scaled":
        return x + 0.5 * y
    return x + y


class Stack(nn.Module):
    """Blocks in a list, a stem before them and perhaps a norm behind."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.e = nn.Linear(spec.width, spec.width)
        self.z = nn.ModuleList(Block(spec) for _ in range(spec.depth))
        self.f = build_norm(spec.norm, spec.width) if spec.final_norm else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.e(x)
        for block in self.z:
            x = block(x)
        return self.f(x)


class ParentStack(nn.Module):
    """Sibling lists of norms and sublayers; the parent writes every add."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.e = nn.Linear(spec.width, spec.width)
        self.z = nn.ModuleList(build_sublayer(spec.sublayer, spec.width) for _ in range(spec.depth))
        self.t = Sum()
        for site, name in (("input", "i"), ("output", "o"), ("trunk", "k")):
            present = site in SITES[spec.placement]
            setattr(
                self,
                name,
                nn.ModuleList(
                    build_norm(spec.norm, spec.width) if present else nn.Identity()
                    for _ in range(spec.depth)
                ),
            )
        self.f = build_norm(spec.norm, spec.width) if spec.final_norm else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.e(x)
        for sublayer, i, o, k in zip(self.z, self.i, self.o, self.k, strict=True):
            x = k(add(self.spec.add, x, o(sublayer(i(x))), self.t))
        return self.f(x)


def build(spec: Spec) -> tuple[nn.Module, torch.Tensor]:
    """Return a specimen and an un-normalized input of shape [2, 6, width]."""
    torch.manual_seed(0)
    module = ParentStack(spec) if spec.parent_adds else Stack(spec)
    return module.eval(), 3.0 * torch.randn(2, 6, spec.width) + 1.0
