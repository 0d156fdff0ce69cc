"""NS106: every fact that a policy can expect, held and not held, of a model and of its stacks."""

from dataclasses import replace

import pytest

from golden.inspections import (
    Style,
    bert,
    deepseek,
    falcon,
    llama,
    norm,
    opt_without_final_norm,
    t5,
)
from normscope.audit.expectations import Expectation
from normscope.inspection import Inspection, Placement, Role, Site
from specimens.observed import ended, observed, with_branch, with_norm, with_norms


def unmet(made: Inspection, **expected: object) -> list[tuple[str, str, str]]:
    seen = observed("NS106", made, Expectation(**expected))  # type: ignore[arg-type]
    return [(item.where, item.found, item.expected) for item in seen]


LLAMA = ended(llama(2), "norm")


def with_qk_norms(made: Inspection, reader: str) -> Inspection:
    """Put a norm into each attention, read by `reader` below it ("" for the attention itself)."""
    for block in made.blocks:
        name = f"{block.path}.self_attn.q_norm"
        inside = {**block.branches[0].norms, Site.INSIDE_BRANCH: (name,)}
        made = with_branch(made, block.path, 0, norms=inside)
        readers = (f"{block.path}.self_attn{reader}",)
        row = norm(name, Role.INSIDE_BRANCH, Style(eps=1e-3), block=block.path, readers=readers)
        made = replace(made, norms=(*made.norms, row))
    return made


@pytest.mark.parametrize(
    ("fact", "holds", "fails", "where", "words"),
    [
        (
            "placement",
            "pre-norm",
            "post-norm",
            "layers.0",
            ("placement pre-norm", "placement post-norm"),
        ),
        (
            "norm",
            "RMSNorm",
            "LayerNorm",
            "layers.0.input_layernorm",
            ("kind RMSNorm", "kind LayerNorm"),
        ),
        ("eps", 1e-6, 1e-5, "layers.0.input_layernorm", ("eps 1e-06", "eps 1e-05")),
        ("gain", "w", "1+w", "layers.0.input_layernorm", ("gain w", "gain 1+w")),
        ("bias", False, True, "layers.0.input_layernorm", ("bias no", "bias yes")),
        ("final_norm", True, False, "", ("final norm yes", "final norm no")),
        ("embedding_norm", False, True, "", ("embedding norm no", "embedding norm yes")),
        ("qk_norm", False, True, "layers.0", ("QK norm no", "QK norm yes")),
        ("parallel", False, True, "layers.0", ("parallel branches no", "parallel branches yes")),
        (
            "statistics_dtype",
            "float32",
            "bfloat16",
            "layers.0.input_layernorm",
            ("statistics dtype float32", "statistics dtype bfloat16"),
        ),
        ("norms", 5, 6, "", ("norm calls 5", "norm calls 6")),
    ],
)
def test_each_fact_holds_or_is_told_with_both_values(
    fact: str, holds: object, fails: object, where: str, words: tuple[str, str]
) -> None:
    assert unmet(LLAMA, **{fact: holds}) == []
    assert unmet(LLAMA, **{fact: fails})[0] == (where, *words)


def test_nothing_expected_is_nothing_unmet() -> None:
    assert unmet(LLAMA) == []


def test_every_block_and_every_norm_is_held_against_it() -> None:
    assert [where for where, *_ in unmet(LLAMA, placement="post-norm")] == ["layers.0", "layers.1"]
    assert [where for where, *_ in unmet(LLAMA, eps=1e-5)] == [n.name for n in LLAMA.norms]
    one = with_norm(LLAMA, "layers.1.post_attention_layernorm", eps=1e-5)
    assert unmet(one, eps=1e-6) == [("layers.1.post_attention_layernorm", "eps 1e-05", "eps 1e-06")]


def test_the_final_norm_counts_and_those_inside_branches_do_not() -> None:
    assert unmet(with_norm(LLAMA, "norm", gain="1+w"), gain="w") == [("norm", "gain 1+w", "gain w")]
    assert unmet(with_qk_norms(LLAMA, ""), eps=1e-6) == []
    embedding = norm("embed_norm", Role.EMBEDDING, Style(eps=1e-3))
    assert unmet(replace(LLAMA, norms=(embedding, *LLAMA.norms)), eps=1e-6) == []


@pytest.mark.parametrize("eps", [1e-6, 9.999999974752427e-07])
def test_an_eps_that_went_through_float32_is_the_same(eps: float) -> None:
    assert unmet(with_norms(LLAMA, lambda n: replace(n, eps=eps)), eps=1e-6) == []


def test_a_norm_without_eps_is_none() -> None:
    assert unmet(with_norm(LLAMA, "norm", eps=None), eps=1e-6) == [
        ("norm", "eps none", "eps 1e-06")
    ]


# QK norms


def test_a_norm_that_the_attention_reads_itself_is_a_qk_norm() -> None:
    assert unmet(with_qk_norms(LLAMA, ""), qk_norm=True) == []
    assert len(unmet(with_qk_norms(LLAMA, ""), qk_norm=False)) == 2


@pytest.mark.parametrize("made", [with_qk_norms(LLAMA, ".o_proj"), deepseek()])
def test_a_latent_and_an_inner_output_norm_are_none(made: Inspection) -> None:
    assert unmet(made, qk_norm=False) == []


# Placement, final norm, parallel


def test_a_mixed_stack_is_expected_as_a_whole() -> None:
    made = with_branch(LLAMA, "layers.1", 0, placement=Placement.POST)
    stacks = tuple(replace(stack, placement=Placement.MIXED) for stack in made.stacks)
    made = replace(made, stacks=stacks)
    assert unmet(made, placement="mixed") == []
    assert unmet(made, placement="pre-norm") == [
        ("layers.1", "placement mixed", "placement pre-norm")
    ]
    assert unmet(LLAMA, placement="mixed") == [("layers", "placement pre-norm", "placement mixed")]


def test_a_model_without_stacks_is_held_as_a_whole() -> None:
    made = replace(LLAMA, stacks=(), blocks=tuple(replace(b, stack=None) for b in LLAMA.blocks))
    assert unmet(made, placement="post-norm")[0] == (
        "",
        "placement pre-norm",
        "placement post-norm",
    )
    assert unmet(made, placement="pre-norm", eps=1e-6) == []
    assert [where for where, *_ in unmet(made, eps=1e-5)] == [n.name for n in made.norms]


def test_the_lost_final_norm_of_opt() -> None:
    assert unmet(opt_without_final_norm(), final_norm=True) == [
        ("", "final norm no", "final norm yes")
    ]


def test_parallel_branches() -> None:
    assert unmet(falcon(), parallel=True) == []
    assert len(unmet(falcon(), parallel=False)) == len(falcon().blocks)


def test_an_embedding_norm() -> None:
    assert unmet(bert(), embedding_norm=True, final_norm=False, placement="post-norm") == []


# Stacks


def test_a_stack_may_be_expected_otherwise() -> None:
    made = with_norms(t5(), lambda n: replace(n, eps=1e-5) if n.name.startswith("dec") else n)
    own = {"decoder.block": Expectation(eps=1e-5)}
    assert unmet(made, eps=1e-6, placement="pre-norm", stacks=own) == []
    assert {where.partition(".")[0] for where, *_ in unmet(made, eps=1e-6)} == {"decoder"}
    wrong = {"decoder.block": Expectation(placement="post-norm")}
    seen = unmet(made, placement="pre-norm", stacks=wrong)
    assert [where for where, *_ in seen] == [f"decoder.block.{n}" for n in range(6)]


def test_a_stack_has_its_own_end_and_count() -> None:
    own = {"layers": Expectation(final_norm=True, norms=4)}
    assert unmet(LLAMA, stacks=own) == []
    assert unmet(ended(LLAMA), stacks=own) == [("layers", "final norm no", "final norm yes")]
    trunk = "encoder.layer.11.output.LayerNorm"  # reads the last sum, and ends no stack
    behind = {"encoder.layer": Expectation(final_norm=False)}
    assert unmet(ended(bert(), trunk), stacks=behind) == []
    assert unmet(LLAMA, stacks={"layers": Expectation(norms=5)}) == [
        ("layers", "norm calls 4", "norm calls 5")
    ]


def test_a_stack_that_there_is_not_is_told() -> None:
    assert unmet(LLAMA, stacks={"encoder": Expectation(eps=1e-6)}) == [
        ("encoder", "none", "a stack")
    ]


def test_a_stack_that_there_is_not_is_told_with_the_nearest() -> None:
    def told(made: Inspection, path: str) -> str:
        wanted = Expectation(stacks={path: Expectation(eps=1e-6)})
        (seen,) = [it for it in observed("NS106", made, wanted) if it.where == path]
        return seen.message

    assert told(t5(), "encoder.blok") == "there is no such stack; did you mean `encoder.block`?"
    assert told(LLAMA, "x") == "there is no such stack; there are: `layers`"
    assert told(replace(LLAMA, stacks=()), "x") == "there is no such stack; the model has none"
