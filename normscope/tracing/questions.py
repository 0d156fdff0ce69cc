"""What the graph so far says about a value whose content the code asks for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from normscope.graph import Node

_LOOK_BACK = 6
_KEEPS_A_COUNT = frozenset(
    {"max", "amax", "min", "amin", "select", "_to_copy", "view", "unsqueeze", "squeeze", "clamp"}
)
"""Operations through which a count stays a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is known of a value whose content is asked for."""

    operation: str = ""
    """The operation that made it."""
    count: int | None = None
    """How many elements were added up in it: the answer where masks are true everywhere."""
    none_true: bool = False
    """Whether the code was told before that no element of the same mask is true."""
    chosen_among: int | None = None
    """How many there were to choose from, for a mask of what a top-k chose."""


@dataclass(slots=True)
class Questions:
    """Remembers what the code was told, so that later answers agree with it."""

    _none_true: set[int] = field(default_factory=set)

    def about(self, nodes: Sequence[Node], index: int | None) -> Asked:
        """Return what is known of the value of one node."""
        if index is None:
            return Asked()
        node = nodes[index]
        mask = node.operands[0] if node.operands else -1
        if node.operation == "any":
            self._none_true.add(mask)
        return Asked(
            operation=node.operation,
            count=_count_behind(nodes, node),
            none_true=node.operation == "all" and mask in self._none_true,
            chosen_among=_chosen_among(nodes, node),
        )


def _count_behind(nodes: Sequence[Node], node: Node) -> int | None:
    """Return how many elements a sum behind a value added up, if there is one."""
    for _ in range(_LOOK_BACK):
        if not node.operands:
            return None
        source = nodes[node.operands[0]]
        if node.operation == "sum":
            return max(math.prod(source.shape) // max(math.prod(node.shape), 1), 1)
        if node.operation not in _KEEPS_A_COUNT:
            return None
        node = source
    return None


def _chosen_among(nodes: Sequence[Node], node: Node) -> int | None:
    """Return how many elements a top-k behind a one-hot mask chose from, if there is one.

    Code may give the mask a place more, for a choice that is never made (DBRX).
    """
    for _ in range(2 * _LOOK_BACK):
        if not node.operands:
            return None
        source = nodes[node.operands[0]]
        if node.operation == "topk":
            return source.shape[-1]
        node = source
    return None
