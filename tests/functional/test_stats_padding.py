"""Padding on either side changes no number, as long as the positions are those of the text."""

from collections.abc import Callable

import pytest
import torch
import transformers
from torch import nn

from normscope.activations import measure_activations
from normscope.statistics import Moments

TEXT = torch.tensor([[5, 6, 7, 8]])
OTHER = torch.tensor([[9, 10, 11, 12, 13, 14, 15]])


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    return transformers.GPT2Model(config)


def llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=32,
    )  # fmt: skip
    return transformers.LlamaModel(config)


def padded(*, left: bool) -> dict[str, torch.Tensor]:
    """Return both texts in a batch, with the positions that a text has alone."""
    gap = OTHER.shape[1] - TEXT.shape[1]
    sides = (gap, 0) if left else (0, gap)
    mask = nn.functional.pad(torch.ones_like(TEXT), sides)
    short = nn.functional.pad(TEXT, sides)
    masks = torch.cat([mask, torch.ones_like(OTHER)])
    return {
        "input_ids": torch.cat([short, OTHER]),
        "attention_mask": masks,
        "position_ids": (masks.cumsum(-1) - 1).clamp(min=0),
    }


@pytest.mark.parametrize("build", [gpt2, llama], ids=lambda build: build.__name__)
@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_a_padded_text_has_the_numbers_that_it_has_alone(
    build: Callable[[], nn.Module], left: bool
) -> None:
    torch.manual_seed(0)
    model = build()
    alone = measure_activations(model, {"input_ids": TEXT})
    batch = measure_activations(model, padded(left=left))
    assert batch.input.padding == 3
    count = TEXT.shape[1]
    assert [token.id for token in batch.tokens[:count]] == TEXT[0].tolist()
    assert [token.position for token in batch.tokens[:count]] == [0, 1, 2, 3]
    for one, many in zip(alone.norms, batch.norms, strict=True):
        for own, shared in ((one.before, many.before), (one.after, many.after)):
            assert numbers(shared)[: 3 * count] == pytest.approx(numbers(own), rel=1e-5, abs=1e-7)


def numbers(moments: Moments | None) -> list[float]:
    assert moments is not None
    rows = zip(moments.mean, moments.variance, moments.peak, strict=True)
    return [number for row in rows for number in row]
