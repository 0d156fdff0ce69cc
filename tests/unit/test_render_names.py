import pytest

from normscope.render.names import siblings_as_one, within_block


@pytest.mark.parametrize(
    ("name", "block", "shown"),
    [
        ("layers.3.input_layernorm", "layers.3", "input_layernorm"),
        ("layers.3:RMSNorm.1", "layers.3", "self:RMSNorm.1"),
        ("layers.3.attn:RMSNorm", "layers.3", "attn:RMSNorm"),
        ("layer_norm1.3", "attentions.3", "layer_norm1.*"),
        ("layers.30.norm", "layers.3", "layers.30.norm"),
        ("layers.4.input_layernorm", "layers.3", "next block's input_layernorm"),
        ("layers.4:RMSNorm", "layers.3", "next block's self:RMSNorm"),
        ("1.norm", "0", "next block's norm"),
        ("norm", "block", "norm"),
    ],
)
def test_names_are_told_from_their_block(name: str, block: str, shown: str) -> None:
    assert within_block(name, block) == shown


def test_numbered_siblings_are_one() -> None:
    names = ["q.norms.0", "q.norms.1", "k.norms.0", "q.norms.2", "out", "k.norms.2"]
    assert siblings_as_one(names) == ("q.norms.0-2", "k.norms.0, 2", "out")


def test_the_last_number_is_the_one_that_runs() -> None:
    names = ["layers.0.blocks.0.norm", "layers.0.blocks.1.norm", "layers.1.blocks.0.norm"]
    assert siblings_as_one(names) == ("layers.0.blocks.0-1.norm", "layers.1.blocks.0.norm")


def test_one_number_in_the_middle_is_joined() -> None:
    assert siblings_as_one([f"stages.{n}.down.0" for n in (1, 2, 3)]) == ("stages.1-3.down.0",)


def test_a_name_alone_stays() -> None:
    assert siblings_as_one(["a.0.b", "a.0.b", "c"]) == ("a.0.b", "c")
