import pytest

from normscope.audit.misleading_names import contradiction
from normscope.inspection import BranchKind, Role

MLP, ATTENTION = BranchKind.MLP, BranchKind.ATTENTION


@pytest.mark.parametrize(
    ("name", "role", "branch", "told"),
    [
        (
            "layers.0.post_attention_layernorm",
            Role.BRANCH_INPUT,
            MLP,
            'named "post", but it normalizes the input of the mlp',
        ),
        (
            "layers.0.layernorm_before",
            Role.BRANCH_OUTPUT,
            ATTENTION,
            'named "before", but it normalizes the output of the attention',
        ),
        (
            "layers.0.input_layernorm",
            Role.TRUNK,
            ATTENTION,
            'named "input", but it normalizes the stream after the attention',
        ),
        (
            "layers.0.final_layer_norm",
            Role.BRANCH_INPUT,
            MLP,
            'named "final", but it normalizes the input of the mlp',
        ),
        ("model.embedding_norm", Role.FINAL, None, 'named "embedding", but it is the final norm'),
        ("b.PostNorm", Role.BRANCH_INPUT, None, 'named "Post", but it normalizes the input of'),
    ],
)
def test_a_name_that_says_another_thing_is_told(
    name: str, role: Role, branch: BranchKind | None, told: str
) -> None:
    assert (contradiction(name, role, branch) or "").startswith(told)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("layers.0.post_attention_layernorm", Role.BRANCH_OUTPUT),
        ("layers.0.post_attention_layernorm", Role.TRUNK),
        ("layers.0.input_layernorm", Role.BRANCH_INPUT),
        ("decoder.final_layer_norm", Role.FINAL),
        ("embedding_norm", Role.EMBEDDING),
        ("post_block.norm", Role.BRANCH_INPUT),
        ("layers.0.poster_norm", Role.BRANCH_INPUT),
        ("layers.0.attention.output.LayerNorm", Role.TRUNK),
    ],
)
def test_a_name_that_is_right_or_silent_is_not(name: str, role: Role) -> None:
    assert contradiction(name, role, MLP) is None
