"""Norm module -> which elements of its input share one statistic."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The axes of one statistic; `split` is an axis that falls into several groups."""

    axes: tuple[int, ...]
    split: int | None
    groups: int
    count: int

    def normalized(self, x: torch.Tensor, *, centred: bool) -> torch.Tensor:
        """Return x over its root mean square, or x minus its mean over its deviation."""
        shape, axes = x.shape, self.axes
        if self.split is not None:
            x = x.unflatten(self.split, (self.groups, -1))
            axes = tuple(axis + (axis >= self.split) for axis in axes)
        if centred:
            x = x - x.mean(axes, keepdim=True)
        return (x / x.square().mean(axes, keepdim=True).sqrt()).reshape(shape)


def groups_of(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Groups:
    """Change one element and see which outputs change: those that share its statistic."""
    place = tuple(size // 2 for size in x.shape)
    changed = x.clone()
    changed[place] = changed[place] + 10.0 * x.abs().max()
    differs = run(changed) != run(x)
    where = differs.nonzero()
    spans = [int(where[:, axis].unique().numel()) for axis in range(x.dim())]
    axes = tuple(axis for axis, span in enumerate(spans) if span > 1)
    part = [axis for axis in axes if spans[axis] < x.shape[axis]]
    split = part[0] if len(part) == 1 and x.shape[part[0]] % spans[part[0]] == 0 else None
    return Groups(
        axes=axes,
        split=split,
        groups=1 if split is None else x.shape[split] // spans[split],
        count=prod(spans),
    )
