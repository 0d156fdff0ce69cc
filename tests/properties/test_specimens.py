"""The central property: inspecting a model built from a spec gives the spec back."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normscope import inspect_module
from normscope.inspection import Inspection
from specimens.build import build
from specimens.spec import ADDS, KINDS, NOISES, NORMS, SITES, SUBLAYERS, Spec

KIND_OF_SUBLAYER = {"linear": "mlp", "attention": "attention", "conv": "conv", "mlp": "mlp"}


def inspected(spec: Spec) -> Inspection:
    module, x = build(spec)
    return inspect_module(module, x)


def check(spec: Spec) -> None:
    report = inspected(spec)
    assert report.placement.value == spec.placement
    (stack,) = report.stacks
    assert (stack.path, stack.blocks) == ("z", spec.depth)
    assert [variant.indices for variant in stack.variants] == [tuple(range(spec.depth))]
    for block in report.blocks:
        (branch,) = block.branches
        assert branch.kind.value == KIND_OF_SUBLAYER[spec.sublayer]
        assert branch.placement.value == spec.placement
    sites = SITES[spec.placement]
    finals = [norm for norm in report.norms if norm.role.value == "final"]
    assert len(finals) == spec.final_norm
    assert len(report.norms) == len(sites) * spec.depth + spec.final_norm
    for norm in report.norms:
        assert norm.kind == KINDS[spec.norm]
        assert norm.axes == (-1,)
        assert norm.shape == (spec.width,)
        assert norm.eps == pytest.approx(1e-5)
        assert norm.gain == ("1+w" if spec.norm == "rms_offset" else "w")
        assert norm.bias == spec.norm.startswith("layer")


@pytest.mark.parametrize("placement", SITES)
@pytest.mark.parametrize("sublayer", SUBLAYERS)
@pytest.mark.parametrize("depth", [1, 2, 6])
def test_textbook_sublayers_at_every_depth(placement: str, sublayer: str, depth: int) -> None:
    check(Spec(placement=placement, sublayer=sublayer, depth=depth))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("placement", [name for name in SITES if name != "no-norm"])
def test_a_norm_written_in_any_way(norm: str, placement: str) -> None:
    check(Spec(norm=norm, placement=placement))


@pytest.mark.parametrize("add", ADDS)
@pytest.mark.parametrize("placement", SITES)
def test_an_add_written_in_any_way(add: str, placement: str) -> None:
    check(Spec(add=add, placement=placement))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("placement", SITES)
def test_steps_that_change_nothing(noise: str, placement: str) -> None:
    check(Spec(noise=noise, placement=placement))


@pytest.mark.parametrize("placement", SITES)
@pytest.mark.parametrize("depth", [2, 6])
def test_adds_written_by_the_parent(placement: str, depth: int) -> None:
    check(Spec(placement=placement, depth=depth, parent_adds=True))


@pytest.mark.parametrize("placement", ["pre-norm", "res-post-norm", "sandwich-norm", "no-norm"])
@pytest.mark.parametrize("parent_adds", [False, True])
def test_a_final_norm_is_no_trunk_norm(placement: str, parent_adds: bool) -> None:
    check(Spec(placement=placement, final_norm=True, parent_adds=parent_adds))


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        Spec,
        placement=st.sampled_from(list(SITES)),
        norm=st.sampled_from(NORMS),
        sublayer=st.sampled_from(SUBLAYERS),
        add=st.sampled_from(ADDS),
        noise=st.sampled_from(NOISES),
        depth=st.integers(2, 4),
    )
)
def test_any_spec_is_given_back(spec: Spec) -> None:
    check(spec)


def test_the_check_can_fail() -> None:
    report = inspected(Spec(placement="pre-norm"))
    other = inspected(replace(Spec(), placement="post-norm"))
    assert report.placement is not other.placement
