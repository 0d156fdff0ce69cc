"""NS101, NS102, NS103, NS107 and NS108: what the blocks of a stack must share and must not lack."""

from dataclasses import replace

import pytest

from golden.inspections import Style, bert, gemma2, llama, norm, opt_without_final_norm, swin
from normscope.audit.expectations import Expectation
from normscope.audit.findings import Severity
from normscope.inspection import (
    BranchKind,
    Inspection,
    Placement,
    Role,
    Site,
    Verification,
    VerifiedBranch,
)
from specimens.observed import ended, found, observed, severities, with_branch

NOTHING = dict.fromkeys(Site, ())
WITHOUT = {"placement": Placement.NO_NORM, "norms": NOTHING, "formula": "x + f(x)"}


def post_norm(made: Inspection, path: str) -> Inspection:
    for number in (0, 1):
        made = with_branch(made, path, number, placement=Placement.POST, formula="N(x + f(x))")
    return made


# NS101


def test_the_odd_block_is_named_with_what_the_others_are() -> None:
    (seen,) = observed("NS101", post_norm(llama(6), "layers.4"))
    assert (seen.where, seen.found, seen.expected) == ("layers.4", "post-norm", "pre-norm")
    assert "layers" not in seen.message


def test_like_odd_blocks_are_one_finding() -> None:
    (one,) = found("NS101", post_norm(post_norm(llama(6), "layers.4"), "layers.1"))
    assert one.where == "layers.*"
    assert one.places == ("layers.1", "layers.4")


def test_a_swap_within_a_block_is_odd_too() -> None:
    made = llama(5)
    for n in range(5):
        made = with_branch(made, f"layers.{n}", n == 3, **WITHOUT)
    (seen,) = observed("NS101", made)
    assert (seen.where, seen.found) == ("layers.3", "pre-norm and no-norm")


@pytest.mark.parametrize("make", [llama, bert, gemma2, swin])
def test_equal_blocks_are_not_odd(make) -> None:
    assert observed("NS101", make()) == []


def test_half_against_half_decides_nothing() -> None:
    assert observed("NS101", post_norm(llama(2), "layers.1")) == []


def test_what_the_policy_expects_is_not_odd() -> None:
    made = post_norm(llama(6), "layers.4")
    assert observed("NS101", made, Expectation(placement="post-norm")) == []
    of_stack = Expectation(placement="pre-norm", stacks={"layers": Expectation(placement="other")})
    assert len(observed("NS101", made, of_stack)) == 1


@pytest.mark.parametrize("formula", ["f(N(x))", "P(N(x)) + f(N(x))"])
def test_a_block_that_begins_a_stage_is_not_odd(formula: str) -> None:
    made = with_branch(llama(6), "layers.2", 0, placement=Placement.OTHER, formula=formula)
    assert observed("NS101", made) == []
    odd = with_branch(llama(6), "layers.2", 0, placement=Placement.OTHER, formula="x + σ(N(f(x)))")
    assert len(observed("NS101", odd)) == 1


def test_an_undecided_block_is_left_to_the_rule_for_that() -> None:
    made = with_branch(llama(6), "layers.2", 0, placement=Placement.UNKNOWN, reason="opaque")
    assert observed("NS101", made) == []
    (seen,) = observed("NS107", made)
    assert (seen.where, seen.found) == ("layers.2", "attention unknown")
    assert "opaque" in seen.message


# NS102


def test_a_pre_norm_stack_that_nothing_ends_is_found() -> None:
    (seen,) = observed("NS102", ended(opt_without_final_norm()))
    assert seen.where == opt_without_final_norm().stacks[0].path
    assert seen.found == "no final norm"


@pytest.mark.parametrize(
    "made",
    [
        ended(llama(3), "norm"),  # it has one
        llama(3),  # not known
        ended(bert()),  # post-norm: the stream is normalized already
    ],
)
def test_other_ends_are_not(made: Inspection) -> None:
    assert observed("NS102", made) == []


# NS103


def test_a_branch_without_norm_beside_others_is_found() -> None:
    (seen,) = observed("NS103", with_branch(llama(4), "layers.2", 1, **WITHOUT))
    assert (seen.where, seen.found) == ("layers.2", "mlp without a norm")
    assert seen.severity is None


def test_a_norm_inside_the_branch_is_one() -> None:
    inside = {**NOTHING, Site.INSIDE_BRANCH: ("layers.2.mlp.norm",)}
    made = with_branch(
        llama(4), "layers.2", 1, placement=Placement.NO_NORM, norms=inside, formula="x + f(x)"
    )
    assert observed("NS103", made) == []


def test_a_stack_without_any_norm_is_no_oversight() -> None:
    made = llama(3)
    for n in range(3):
        for number in (0, 1):
            made = with_branch(made, f"layers.{n}", number, **WITHOUT)
    assert observed("NS103", made) == []


def test_a_first_branch_that_reads_the_embedding_norm_is_a_note() -> None:
    made = with_branch(llama(4), "layers.0", 0, **WITHOUT)
    first = norm("embeddings.norm", Role.EMBEDDING, Style())
    fed = replace(first, readers=("layers.0.self_attn.q_proj",))
    made = replace(made, norms=(fed, *made.norms))
    assert severities("NS103", observed("NS103", made)) == [Severity.NOTE]
    assert observed("NS101", made) == []
    elsewhere = replace(made, norms=(first, *made.norms[1:]))
    assert severities("NS103", observed("NS103", elsewhere)) == [Severity.WARNING]


# NS107


def test_a_model_without_blocks_is_undecided() -> None:
    (seen,) = observed("NS107", replace(llama(2), blocks=(), stacks=()))
    assert (seen.where, seen.found) == ("", "no block")


@pytest.mark.parametrize("placement", [Placement.OTHER, Placement.NO_NORM])
def test_an_unusual_placement_is_decided(placement: Placement) -> None:
    assert observed("NS107", with_branch(llama(3), "layers.1", 0, placement=placement)) == []


def test_an_eps_of_unknown_value_is_undecided() -> None:
    made = llama(2)
    norms = (replace(made.norms[0], eps=None), *made.norms[1:])
    assert [seen.found for seen in observed("NS107", replace(made, norms=norms))] == ["eps unknown"]
    without = (replace(made.norms[0], eps=None, eps_position="none"), *made.norms[1:])
    assert observed("NS107", replace(made, norms=without)) == []


@pytest.mark.parametrize(("observed_as", "count"), [(Placement.POST, 1), (Placement.PRE, 0)])
def test_a_verdict_that_the_numbers_deny_is_undecided(observed_as: Placement, count: int) -> None:
    branch = VerifiedBranch(
        block="layers.1",
        branch=0,
        kind=BranchKind.ATTENTION,
        reported=Placement.PRE,
        observed=observed_as,
        sites=(),
        agrees=observed_as is Placement.PRE,
        seen_in="layers.1",
    )
    proof = Verification(
        copy="2 of 2 blocks",
        branches=(branch,),
        norms=(),
        branches_not_checked=(),
        norms_not_checked=(),
    )
    assert len(observed("NS107", replace(llama(2), verification=proof))) == count


# NS108


def test_some_blocks_that_skip_from_the_norm_are_an_error() -> None:
    made = with_branch(llama(4), "layers.2", 1, placement=Placement.OTHER, formula="N(x) + f(N(x))")
    seen = observed("NS108", made)
    assert [item.where for item in seen] == ["layers.2"]
    assert severities("NS108", seen) == [Severity.ERROR]


@pytest.mark.parametrize("formula", ["N(x) + f(N(x))", "N(x) + γ·f(N(x))", "0.5·N(x) - f(N(x))"])
def test_a_whole_stack_that_does_is_a_note(formula: str) -> None:
    made = llama(3)
    for n in range(3):
        made = with_branch(made, f"layers.{n}", 1, placement=Placement.OTHER, formula=formula)
    assert severities("NS108", observed("NS108", made)) == [Severity.NOTE] * 3


@pytest.mark.parametrize(
    "formula",
    ["P(N(x)) + f(N(x))", "N(x + f(x))", "N(P(x)) + N(f(x))", "N(x) + N(f(x))", "x + f(N(x))"],
)
def test_other_norms_near_the_skip_are_another_thing(formula: str) -> None:
    made = with_branch(llama(3), "layers.2", 1, placement=Placement.OTHER, formula=formula)
    assert observed("NS108", made) == []


def test_a_trunk_norm_of_the_next_block_tells_it_of_a_post_norm_stack() -> None:
    made = bert()
    assert observed("NS108", made) == []
    for n in range(11):
        trunk = {**NOTHING, Site.TRUNK: (f"encoder.layer.{n + 1}.input_norm",)}
        made = with_branch(made, f"encoder.layer.{n}", 1, norms=trunk)
    (seen,) = observed("NS108", made)
    assert (seen.where, seen.severity) == ("encoder.layer", Severity.NOTE)
