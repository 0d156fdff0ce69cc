"""The numbers give every specimen's name back, and contradict every other name."""

from dataclasses import replace

import pytest

from normscope import inspect_module
from normscope.checkpoint import resolve_checkpoint
from normscope.inspection import BranchReport, Inspection, Placement, Site
from normscope.model import BuiltModel
from normscope.pipeline import placed_root
from normscope.verification import Verification
from normscope.verification.verify import verify_inspection
from specimens.build import build
from specimens.spec import ADDS, NOISES, NORMS, SITES, SUBLAYERS, Spec

SITE_NAMES = {"input": Site.BRANCH_INPUT, "output": Site.BRANCH_OUTPUT, "trunk": Site.TRUNK}


def verified(spec: Spec, change=lambda report: report) -> tuple[Inspection, Verification]:
    module, x = build(spec)
    report = change(inspect_module(module, x))
    built = BuiltModel(
        target="py:specimens.build:build",
        module=module,
        config=None,
        class_name=type(module).__name__,
        model_type=None,
        dtype="float32",
        parameters=1,
        inputs=((x,), {}),
    )
    checkpoint = resolve_checkpoint(built.target)
    return report, verify_inspection(report, checkpoint, built, placed_root)


def check(spec: Spec) -> None:
    report, found = verified(spec)
    assert [branch.block for branch in found.branches] == [block.path for block in report.blocks]
    assert {branch.observed.value for branch in found.branches} == {spec.placement}
    assert (found.branches_not_checked, found.norms_not_checked) == ((), ())
    assert len(found.norms) == len(report.norms)
    assert found.agrees, [item for item in found.branches if not item.agrees]


@pytest.mark.parametrize("placement", SITES)
@pytest.mark.parametrize("sublayer", SUBLAYERS)
def test_textbook_sublayers(placement: str, sublayer: str) -> None:
    check(Spec(placement=placement, sublayer=sublayer))


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


@pytest.mark.parametrize("parent_adds", [False, True])
@pytest.mark.parametrize("depth", [2, 5])
@pytest.mark.parametrize("placement", ["pre-norm", "res-post-norm", "sandwich-norm", "no-norm"])
def test_before_a_final_norm(placement: str, depth: int, parent_adds: bool) -> None:
    check(Spec(placement=placement, depth=depth, final_norm=True, parent_adds=parent_adds))


def renamed(report: Inspection, placement: str) -> Inspection:
    """Return the report with another name, and the sites of that name, on every branch."""
    sites = tuple(SITE_NAMES[site] for site in SITES[placement])

    def changed(branch: BranchReport) -> BranchReport:
        return replace(branch, placement=Placement(placement), sites=sites)

    blocks = tuple(
        replace(block, branches=tuple(map(changed, block.branches))) for block in report.blocks
    )
    return replace(report, blocks=blocks)


@pytest.mark.parametrize("false", SITES)
@pytest.mark.parametrize("true", SITES)
def test_a_false_name_is_caught_in_every_block(true: str, false: str) -> None:
    _, found = verified(Spec(placement=true), lambda report: renamed(report, false))
    assert {branch.agrees for branch in found.branches} == {true == false}
    assert {(item.reported.value, item.observed.value) for item in found.branches} == {
        (false, true)
    }


@pytest.mark.parametrize(("norm", "false"), [("layer_module", "RMSNorm"), ("rms_pow", "LayerNorm")])
def test_a_false_kind_is_caught_by_a_shift_of_the_stream(norm: str, false: str) -> None:
    def change(report: Inspection) -> Inspection:
        return replace(report, norms=tuple(replace(one, kind=false) for one in report.norms))

    _, found = verified(Spec(norm=norm), change)
    assert not any(branch.agrees for branch in found.branches)
    assert all(branch.reported is branch.observed for branch in found.branches)
    assert not any(one.agrees for one in found.norms)


def test_a_report_that_does_not_decide_is_not_checked() -> None:
    def change(report: Inspection) -> Inspection:
        (block, *_) = report.blocks
        unknown = replace(block.branches[0], placement=Placement.UNKNOWN, reason="told so")
        return replace(report, blocks=(replace(block, branches=(unknown,)),))

    _, found = verified(Spec(), change)
    assert found.branches == ()
    (item,) = found.branches_not_checked
    assert item.reason.startswith("the report does not decide")


def test_a_block_that_the_copy_has_not_is_not_checked() -> None:
    def change(report: Inspection) -> Inspection:
        (block, *_) = report.blocks
        return replace(report, blocks=(replace(block, path="elsewhere.0"),))

    _, found = verified(Spec(), change)
    assert found.branches == ()
    assert [item.reason for item in found.branches_not_checked] == [
        "no block of the copy is like it"
    ]
