"""Every number of a copy is real, and of the size that keeps what flows through it in bounds."""

import torch
from torch import nn

from normscope.verification.randomize import randomized


class Unregistered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.empty(3, 4, device="meta")
        self.sizes = [torch.empty(2, dtype=torch.int64, device="meta"), "named"]
        self.kept = torch.arange(3)


def test_tensors_that_are_plain_attributes_become_real_like_buffers() -> None:
    module = Unregistered()
    made = randomized(module)
    assert torch.equal(made.table, torch.ones(3, 4))
    assert torch.equal(made.sizes[0], torch.zeros(2, dtype=torch.int64))
    assert made.sizes[1] == "named"
    assert torch.equal(made.kept, torch.arange(3))
    assert module.table.is_meta


def test_a_layer_with_one_output_sums_up_and_is_no_gain() -> None:
    one = randomized(nn.Linear(4096, 1, device="meta"))
    assert bool((one.weight < 0).any())
    assert abs(float(one(torch.ones(4096)) - one.bias)) < 5.0
    convolved = randomized(nn.Conv1d(512, 1, 1, device="meta"))
    assert bool((convolved.weight < 0).any())


def test_gains_stay_near_one() -> None:
    for gain in (nn.LayerNorm(64).weight, nn.Parameter(torch.empty(1, 64, 1))):
        owner = nn.Module()
        owner.register_parameter("gain", nn.Parameter(gain.detach().to("meta")))
        value = randomized(owner).get_parameter("gain")
        assert bool(((value >= 0.5) & (value <= 1.5)).all())
