"""Several streams in one value: what mixes them is no branch of its own kind (AltUp)."""

import json
from pathlib import Path

import torch
from torch import nn

from normscope import inspect_checkpoint, inspect_module
from normscope.checkpoint import resolve_checkpoint
from normscope.inspection import Inspection
from normscope.model import build_on_meta
from normscope.pipeline import placed_root
from normscope.verification.verify import verify_inspection

WIDTH = 16
STREAMS = 3
GEMMA = {
    "model_type": "gemma3n_text",
    "vocab_size": 64,
    "vocab_size_per_layer_input": 64,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "hidden_size_per_layer_input": 8,
    "laurel_rank": 4,
    "num_kv_shared_layers": 0,
    "layer_types": ["full_attention"] * 3,
    "activation_sparsity_pattern": [0.0] * 3,
    "max_position_embeddings": 64,
}


def test_every_branch_of_gemma3n_is_told_and_agrees_with_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GEMMA), encoding="utf-8")
    report = inspect_checkpoint(str(tmp_path))
    assert isinstance(report, Inspection), report
    block = [
        ("other", "other", "x + f(x)", "the branch only mixes parallel streams"),
        ("mlp", "other", "x + N(f(N(x)))", "the branch ends in a sum of normalized values"),
        ("attention", "sandwich-norm", "x + N(f(N(x)))", None),
        ("mlp", "sandwich-norm", "x + N(f(N(x)))", None),
        ("mlp", "pre-norm", "x + f(N(x))", None),
        ("mlp", "other", "x + N(f(x))", "it is added to other parts of the stream than it reads"),
    ]
    assert {
        each.path: [(b.kind.value, b.placement.value, b.formula, b.reason) for b in each.branches]
        for each in report.blocks
    } == {f"layers.{index}": block for index in range(3)}
    checkpoint = resolve_checkpoint(str(tmp_path))
    found = verify_inspection(report, checkpoint, build_on_meta(checkpoint), placed_root)
    assert len(found.branches) == 3 * len(block)
    assert [item for item in (*found.branches, *found.norms) if not item.agrees] == []


class Stacked(nn.Module):
    """What is computed from one of the stacked streams is added to the others, or to all."""

    def __init__(self, read: int) -> None:
        super().__init__()
        self.read = read
        self.n = nn.LayerNorm(WIDTH)
        self.m = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.m(self.n(x[self.read]))
        return torch.cat([x[:1], x[1:] + y], dim=0)


def placements(read: int) -> list[str]:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Stacked(read), Stacked(read)).eval()
    report = inspect_module(model, (torch.randn(STREAMS, 2, 6, WIDTH),))
    return [branch.placement.value for block in report.blocks for branch in block.branches]


def test_a_branch_that_reads_another_stream_than_it_is_added_to_is_told() -> None:
    assert placements(read=0) == ["other"] * 2
    assert placements(read=2) == ["pre-norm"] * 2
