"""Live modules that transformers never saw: torch's own layers, other axes, other wirings."""

import pytest
import torch
from torch import nn

from normscope import inspect_module


def one_report(module: nn.Module, *inputs: torch.Tensor):
    torch.manual_seed(0)
    return inspect_module(module.eval(), inputs)


def branches(report):
    return [
        (branch.kind.value, branch.placement.value, branch.formula)
        for block in report.blocks
        for branch in block.branches
    ]


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder_layer(norm_first: bool) -> None:
    """In eval mode without hooks this layer is one fused operation."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)
    report = one_report(layer, torch.randn(2, 5, 16))
    name, formula = ("pre-norm", "x + f(N(x))") if norm_first else ("post-norm", "N(x + f(x))")
    assert branches(report) == [("attention", name, formula), ("mlp", name, formula)]
    assert [norm.name for norm in report.norms] == ["norm1", "norm2"]


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_encoder_with_a_final_norm(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 3, norm=nn.LayerNorm(16), enable_nested_tensor=False)
    report = one_report(encoder, torch.randn(2, 5, 16))
    assert report.placement.value == ("pre-norm" if norm_first else "post-norm")
    assert report.stacks[0].path == "layers"
    assert report.norms[-1].role.value == "final"


@pytest.mark.parametrize("norm_first", [True, False])
def test_transformer_decoder_layer(norm_first: bool) -> None:
    layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first)
    report = one_report(layer, torch.randn(2, 5, 16), torch.randn(2, 7, 16))
    name = "pre-norm" if norm_first else "post-norm"
    assert [(kind, placement) for kind, placement, _ in branches(report)] == [
        ("attention", name),
        ("cross-attention", name),
        ("mlp", name),
    ]


def test_the_axes_tell_batch_norm_from_layer_norm() -> None:
    class Block(nn.Module):
        def __init__(self, norm: nn.Module) -> None:
            super().__init__()
            self.n, self.c = norm, nn.Conv1d(8, 8, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.c(self.n(x))

    axes = {}
    for norm in (nn.BatchNorm1d(8), nn.GroupNorm(2, 8), nn.InstanceNorm1d(8), nn.LayerNorm(6)):
        report = one_report(nn.Sequential(*[Block(norm) for _ in range(2)]), torch.randn(3, 8, 6))
        assert report.placement.value == "pre-norm"
        row = report.norms[0]
        axes[row.kind] = (row.axes, row.groups)
    assert axes == {
        "BatchNorm": ((0, 2), None),
        "GroupNorm": ((1, 2), 2),
        "InstanceNorm": ((2,), None),
        "LayerNorm": ((-1,), None),
    }


def test_training_mode_is_restored_and_no_hook_stays() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    layer.train()
    layer.norm1.eval()
    inspect_module(layer, torch.randn(2, 5, 16))
    assert layer.training
    assert not layer.norm1.training
    assert layer.norm2.training
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in layer.modules())


def test_keyword_inputs_and_a_shared_module_called_many_times() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.ModuleList([_Post()])

        def forward(self, *, h: torch.Tensor) -> torch.Tensor:
            for _ in range(4):
                h = self.q[0](h)
            return h

    report = inspect_module(Shared().eval(), {"h": torch.randn(2, 5, 16)})
    (block,) = report.blocks
    assert (block.path, block.calls, block.placement.value) == ("q.0", 4, "post-norm")
    assert [(norm.call, norm.calls) for norm in report.norms] == [(i, 4) for i in range(4)]


class _Post(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.f, self.g = nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.g(h + self.f(h))


def test_a_norm_that_never_runs_is_a_row_with_no_calls() -> None:
    block = _Post()
    block.unused = nn.LayerNorm(16, eps=1e-3)
    report = one_report(nn.Sequential(block, _Post()), torch.randn(2, 5, 16))
    rows = {norm.name: norm.calls for norm in report.norms}
    assert rows == {"0.g": 1, "1.g": 1, "0.unused": 0}
    assert report.norms[-1].eps == 1e-3


def test_a_skip_taken_after_the_norm_is_post_norm_seen_from_the_stream() -> None:
    class After(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n, self.f = nn.LayerNorm(16), nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = self.n(x)
            return n + self.f(n)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.s, self.l = nn.Linear(16, 16), nn.ModuleList(After() for _ in range(3))
            self.end = nn.LayerNorm(16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.s(x)
            for layer in self.l:
                x = layer(x)
            return self.end(x)

    report = one_report(Model(), torch.randn(2, 5, 16))
    assert report.placement.value == "post-norm"
    assert report.norms[-1].role.value == "final"


def test_parallel_branches_share_one_norm_or_have_two() -> None:
    class Parallel(nn.Module):
        def __init__(self, shared: bool) -> None:
            super().__init__()
            self.a = nn.MultiheadAttention(16, 4, batch_first=True)
            self.b = nn.Linear(16, 16)
            self.n = nn.LayerNorm(16)
            self.m = self.n if shared else nn.LayerNorm(16)
            self.shared = shared

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = self.n(x)
            m = n if self.shared else self.m(x)
            return x + self.a(n, n, n, need_weights=False)[0] + self.b(m)

    for shared in (True, False):
        blocks = nn.Sequential(*[Parallel(shared) for _ in range(2)])
        report = one_report(blocks, torch.randn(2, 5, 16))
        for block in report.blocks:
            assert [branch.kind.value for branch in block.branches] == ["attention", "mlp"]
            assert all(branch.parallel for branch in block.branches)
            assert [branch.shared_norm for branch in block.branches] == [shared, shared]
            assert block.placement.value == "pre-norm"
