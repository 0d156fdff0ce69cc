"""Parameters that are put in place while their module runs, and which leaf of the graph each is.

accelerate's offload holds `meta` tensors between runs, and in each run new ones with the values.
"""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(slots=True)
class PlacedParameters:
    """The leaves of a module's parameters by their names."""

    root: nn.Module
    leaves: dict[str, int] = field(default_factory=dict)

    def find(self, tensor: torch.Tensor, path: str) -> int | None:
        """Return the leaf of a tensor that now is a parameter of the module at `path`, or None."""
        if not isinstance(tensor, nn.Parameter):
            return None
        for name, value in self.root.get_submodule(path).named_parameters(recurse=False):
            if value is tensor:
                return self.leaves.get(f"{path}.{name}" if path else name)
        return None
