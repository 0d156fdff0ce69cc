"""An argument that torch left out has the value that its schema or its documentation says."""

import pytest

from normscope.graph import Graph, Node, Origin
from normscope.norms import find_norms


def graph(operation: str, **arguments: object) -> Graph:
    nodes = (
        Node(index=0, operation="input", shape=(2, 4, 8), origin=Origin.INPUT, name="x"),
        Node(index=1, operation="parameter", shape=(8,), origin=Origin.PARAMETER, name="n.weight"),
        Node(
            index=2,
            operation=operation,
            operands=(0, 1),
            slots=("input", "weight"),
            shape=(2, 4, 8),
            arguments=arguments,  # type: ignore[arg-type]
        ),
    )
    return Graph(nodes=nodes, modules={}, outputs=(2,))


@pytest.mark.parametrize(
    ("operation", "arguments", "eps"),
    [
        ("layer_norm", {"normalized_shape": (8,)}, 1e-5),
        ("layer_norm", {"normalized_shape": (8,), "eps": 1e-12}, 1e-12),
        ("rms_norm", {"normalized_shape": (8,)}, 2.0**-23),
        ("group_norm", {"num_groups": 2}, 1e-5),
    ],
)
def test_eps_that_was_left_out(operation: str, arguments: dict[str, object], eps: float) -> None:
    (norm,) = find_norms(graph(operation, **arguments))
    assert norm.eps == eps
