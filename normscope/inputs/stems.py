"""Module -> how many values its first weight reads at each place: the width of one input."""

import torch
from torch import nn

from normscope.inputs.facts import Scope, words_of


def first_width(module: nn.Module, scope: Scope, kinds: tuple[type[nn.Module], ...]) -> int | None:
    """Return the width that the first layer of these kinds reads, in the part that `scope` names.

    Where no part has such a name, the whole module is looked through.
    """
    named = list(module.named_modules())
    inside = [child for path, child in named if any(word in path for word in words_of(scope))]
    for child in inside or [child for _, child in named]:
        if isinstance(child, kinds):
            if isinstance(child, nn.Linear):
                return child.in_features
            if isinstance(child, nn.Conv1d):
                return child.in_channels
            if isinstance(child, nn.Conv2d | nn.Conv3d):
                return child.in_channels * torch.Size(child.kernel_size).numel()
    return None
