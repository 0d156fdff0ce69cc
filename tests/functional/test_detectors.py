"""Detectors whose heads refine a prediction from block to block: it is no stream of features."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_checkpoint, inspect_module
from normscope.inspection import Inspection

WIDTH = 16
BINS = 12
BACKBONE = {
    "model_type": "hgnet_v2",
    "embedding_size": 4,
    "stem_channels": [3, 4, 8],
    "depths": [1] * 4,
    "hidden_sizes": [8] * 4,
    "stage_in_channels": [8] * 4,
    "stage_mid_channels": [4] * 4,
    "stage_out_channels": [8] * 4,
    "stage_num_blocks": [1] * 4,
    "stage_numb_of_layers": [1] * 4,
    "out_features": ["stage2", "stage3", "stage4"],
}
DETECTOR = {
    "backbone_config": BACKBONE,
    "encoder_hidden_dim": 16,
    "encoder_in_channels": [8] * 3,
    "encoder_ffn_dim": 16,
    "encoder_attention_heads": 2,
    "d_model": 16,
    "decoder_in_channels": [16] * 3,
    "decoder_ffn_dim": 16,
    "decoder_attention_heads": 2,
    "decoder_layers": 3,
    "decoder_n_points": [1] * 3,
    "num_queries": 5,
    "max_num_bins": 8,
    "lqe_hidden_dim": 8,
}


def blocks(report: object) -> dict[str, list[tuple[str, str]]]:
    assert isinstance(report, Inspection), report
    return {
        block.path: [(branch.kind.value, branch.formula) for branch in block.branches]
        for block in report.blocks
    }


@pytest.mark.parametrize(
    ("model_type", "head"),
    [("d_fine", "DFineForObjectDetection"), ("deimv2", "Deimv2ForObjectDetection")],
)
def test_the_refinement_of_boxes_changes_no_block(model_type: str, head: str, tmp_path: Path):
    def inspected(architectures: list[str]) -> dict[str, list[tuple[str, str]]]:
        config = {"model_type": model_type, **DETECTOR, "architectures": architectures}
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return blocks(inspect_checkpoint(str(tmp_path)))

    bare, under = inspected([head.replace("ForObjectDetection", "Model")]), inspected([head])
    assert bare["decoder.layers.1"] == [
        ("attention", "N(x + f(x))"),
        ("cross-attention", "N(g·x + f(x))"),
        ("mlp", "N(x + f(x))"),
    ]
    assert under == {f"model.{path}": branches for path, branches in bare.items()}


class Looking(nn.Module):
    """A block that is told where to look by a position beside what it asks with."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n, self.p = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.m = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        scores = self.q(x + place) @ self.k(x + place).transpose(-1, -2)
        x = self.n(x + self.o(functional.softmax(scores, dim=-1) @ self.v(x)))
        return self.p(x + self.m(x))


class Predicting(nn.Module):
    """Each block's guess is added to the one before, and places the questions of the next."""

    def __init__(self, *, told: bool) -> None:
        super().__init__()
        self.told = told
        self.b = nn.ModuleList(Looking() for _ in range(4))
        self.g = nn.ModuleList(nn.Linear(WIDTH, BINS) for _ in range(4))
        self.w = nn.Linear(BINS, WIDTH)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        guess: torch.Tensor | int = 0
        place = torch.zeros_like(x)
        for block, head in zip(self.b, self.g, strict=True):
            x = block(x, place)
            if self.told:
                x = x + self.w(guess) if torch.is_tensor(guess) else x
            guess = head(x) + guess
            place = self.w(functional.softmax(guess, dim=-1))
        return x, guess


def predicted(*, told: bool) -> dict[str, list[tuple[str, str]]]:
    return blocks(inspect_module(Predicting(told=told).eval(), (torch.randn(2, 6, WIDTH),)))


def test_a_sum_of_predictions_that_only_places_the_next_questions_is_no_stream() -> None:
    block = [("attention", "N(x + f(x))"), ("mlp", "N(x + f(x))")]
    assert predicted(told=False) == {f"b.{index}": block for index in range(4)}


def test_a_sum_that_the_other_stream_takes_up_is_one() -> None:
    paths = set(predicted(told=True))
    assert paths > {f"b.{index}" for index in range(4)}
