"""A branch that is a long sum is read without descending into each of its parts."""

import sys

from normscope.graph import Graph, Module, Node, Origin
from normscope.residuals import find_stream


def test_a_sum_of_more_parts_than_the_stack_is_deep_is_one_branch() -> None:
    nodes = [
        Node(index=0, operation="input", shape=(2, 8), origin=Origin.INPUT),
        Node(index=1, operation="parameter", shape=(8, 8), origin=Origin.PARAMETER, name="w"),
    ]

    def add(operation: str, *operands: int) -> int:
        nodes.append(Node(index=len(nodes), operation=operation, operands=operands, shape=(2, 8)))
        return len(nodes) - 1

    total = add("mm", 0, 1)
    for _ in range(sys.getrecursionlimit()):
        total = add("add", total, add("mm", 0, 1))
    last = add("add", 0, total)
    stream = find_stream(
        Graph(nodes=tuple(nodes), modules={"": Module(path="", class_name="Experts")})
    )
    assert list(stream.adds) == [last]
    assert [branch.output for branch in stream.adds[last].branches] == [total]
